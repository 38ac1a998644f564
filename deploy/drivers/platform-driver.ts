import type { Lifetime } from '#deploy/parts/lifetime.ts';
import type { StartOptions } from '#deploy/parts/start-options.ts';
import type { Clock } from '#shared/clock.ts';
import type { Platform } from '#shared/platform/platform.ts';
import type { Router } from '#shared/routing/router.ts';
import type { SecretBox } from '#shared/secret-box.ts';

/** What a start asks of a driver of the platform. */
export interface PlatformDriver {
  /** Whether visitors reach the apps by the gateways of the data directory. */
  readonly hasGateways: boolean;
  /**
   * Resolves once this process may drive the platform and no other one does. Before that it changes nothing.
   * @throws StartError for what the operator can fix, and when `stopping` has ended the wait
   */
  claim(lifetime: Lifetime, options: ClaimOptions): Promise<void>;
  /** Starts it. It has taken over what an earlier control plane left when the promise resolves. */
  create(lifetime: Lifetime, parts: PlatformParts): Promise<Platform>;
}

export interface ClaimOptions extends StartOptions {
  stopping: AbortSignal;
}

/** What a driver is built on. */
export interface PlatformParts extends StartOptions {
  /** Of gateways that run; undefined where the driver has none. */
  router: Router | undefined;
  secretBox: SecretBox;
  clock: Clock;
}
