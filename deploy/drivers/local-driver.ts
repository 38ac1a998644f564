import type { PlatformDriver } from '#deploy/drivers/platform-driver.ts';
import { createLocalPlatform } from '#shared/platform/local/local-platform.ts';

/** The driver of one machine. Whoever has locked the data directory drives it. */
export const localDriver: PlatformDriver = {
  hasGateways: true,
  claim: async () => undefined,
  async create(lifetime, { settings, dataDir, hostEnv, router, secretBox, clock, log }) {
    if (router === undefined) throw new Error('One machine needs a gateway.');
    const { appNetwork, shareRegistryCredentials, imageRegistries, diskReserveBytes, imageBytes } = settings;
    const platform = await createLocalPlatform({
      dataDir,
      router,
      secretBox,
      clock,
      log,
      appNetwork,
      shareRegistryCredentials,
      imageRegistries,
      hostEnv,
      diskReserveBytes,
      imageBytes,
    });
    lifetime.onEnd((ending) => (ending === 'stop' ? platform.stop() : platform.detach()));
    return platform;
  },
};
