import { createKubernetesDriver } from '#deploy/parts/kubernetes/kubernetes-driver.ts';
import { localDriver } from '#deploy/parts/local-driver.ts';
import type { PlatformDriver } from '#deploy/parts/platform-driver.ts';
import type { Settings } from '#shared/settings/settings.ts';

/** Chooses the driver that the settings name. Nothing is asked of it yet. */
export function choosePlatform(settings: Settings): PlatformDriver {
  return settings.kubernetes === undefined ? localDriver : createKubernetesDriver(settings, settings.kubernetes);
}
