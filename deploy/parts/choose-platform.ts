import { StartError } from '#deploy/host/start-error.ts';
import type { Lifetime } from '#deploy/parts/lifetime.ts';
import { createLocalPlatform, type LocalPlatformOptions } from '#shared/platform/local/local-platform.ts';
import type { Platform } from '#shared/platform/platform.ts';
import type { Settings } from '#shared/settings/settings.ts';

/** Starts a driver of the platform. It has taken over what an earlier control plane left when the promise resolves. */
export type CreatePlatform = (lifetime: Lifetime, options: LocalPlatformOptions) => Promise<Platform>;

/**
 * Chooses the driver that the settings name. The first step of a start, so that a wrong name changes nothing.
 * @throws StartError for a driver that is not complete
 */
export function choosePlatform({ platform }: Pick<Settings, 'platform'>): CreatePlatform {
  switch (platform) {
    case 'local':
      return createLocal;
    case 'kubernetes':
      throw new StartError(
        `PAAS_PLATFORM: ${platform} is not available yet: its settings and the parts of a start are missing (docs/kubernetes.md). Leave it unset to run on this machine.`,
      );
  }
}

async function createLocal(lifetime: Lifetime, options: LocalPlatformOptions): Promise<Platform> {
  const platform = await createLocalPlatform(options);
  lifetime.onEnd((ending) => (ending === 'stop' ? platform.stop() : platform.detach()));
  return platform;
}
