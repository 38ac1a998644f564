/**
 * The ports of the platform that apps run on: one machine (`local/`), Kubernetes (`kubernetes/`) or memory for tests (`fake/`).
 * One file a port. Drivers report facts; shared/core decides what they mean. Verbs are idempotent: `ensure…` again is
 * harmless, `delete…` reports whether there was anything. Every method may throw `AppError('internal')` when the platform
 * itself fails.
 */
import type { Addons } from '#shared/platform/addons.ts';
import type { AppEnvironments } from '#shared/platform/app-environments.ts';
import type { AppLogs } from '#shared/platform/app-logs.ts';
import type { BuildCaches } from '#shared/platform/build-caches.ts';
import type { Builds } from '#shared/platform/builds.ts';
import type { Certificates } from '#shared/platform/certificates.ts';
import type { Images } from '#shared/platform/images.ts';
import type { Metrics } from '#shared/platform/metrics.ts';
import type { Rollouts } from '#shared/platform/rollouts.ts';
import type { Workloads } from '#shared/platform/workloads.ts';

export interface Platform {
  readonly capabilities: PlatformCapabilities;
  readonly caches: BuildCaches;
  readonly builds: Builds;
  readonly images: Images;
  readonly appEnvironments: AppEnvironments;
  readonly workloads: Workloads;
  readonly rollouts: Rollouts;
  readonly logs: AppLogs;
  readonly metrics: Metrics;
  readonly certificates: Certificates;
  readonly addons: Addons;
}

export interface PlatformCapabilities {
  /** `pipeline` label of builds and of the counter: 'local' or 'tekton'. */
  readonly pipeline: string;
  /** False: code is run unconfined, so only the operator's own tenant may build and sign-up is closed. */
  readonly sandbox: boolean;
  /** Why `sandbox` is false, and the command that mends it. */
  readonly sandboxProblem?: string;
}
