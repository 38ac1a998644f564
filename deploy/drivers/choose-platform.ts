import { createKubernetesDriver } from '#deploy/drivers/kubernetes-driver.ts';
import { localDriver } from '#deploy/drivers/local-driver.ts';
import type { PlatformDriver } from '#deploy/drivers/platform-driver.ts';
import type { Settings } from '#shared/settings/settings.ts';

/** Chooses the driver that the settings name. Nothing is asked of it yet. */
export function choosePlatform(settings: Settings): PlatformDriver {
  return settings.kubernetes === undefined ? localDriver : createKubernetesDriver(settings, settings.kubernetes);
}
