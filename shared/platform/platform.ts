/**
 * The ports of the platform that apps run on, each in a file of its own, with what Kubernetes does for each verb. Drivers: one
 * machine (`local/`), and memory for tests (`fake/`). Drivers report facts; shared/core decides what they mean. Verbs are
 * idempotent: `ensure…` may be called again, `delete…` returns whether there was anything. Every method may throw
 * `AppError('internal')` when the platform itself fails.
 */
import type { Addons } from '#shared/platform/addons.ts';
import type { AppEnvironments } from '#shared/platform/app-environments.ts';
import type { AppLogs } from '#shared/platform/app-logs.ts';
import type { BuildCaches } from '#shared/platform/build-caches.ts';
import type { Builds } from '#shared/platform/builds.ts';
import type { Certificates } from '#shared/platform/certificates.ts';
import type { DiskSpace } from '#shared/platform/disk-space.ts';
import type { Drift } from '#shared/platform/drift.ts';
import type { Images } from '#shared/platform/images.ts';
import type { Metrics } from '#shared/platform/metrics.ts';
import type { Rollouts } from '#shared/platform/rollouts.ts';
import type { Workloads } from '#shared/platform/workloads.ts';

/** All ports, as one driver implements them. */
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
  readonly diskSpace: DiskSpace;
  /** Left out where nobody else can change what the platform made. */
  readonly drift?: Drift;
}

/** What the driver can do: core asks for that, never for the driver. */
export interface PlatformCapabilities {
  /** The label `pipeline` of builds and of the counter of their starts: 'local' or 'tekton'. */
  readonly pipeline: string;
  /** False when apps' code cannot be confined: then only the operator's own tenant may build, and sign-up is closed. */
  readonly sandbox: boolean;
  /** Why `sandbox` is false, and the command that fixes it. */
  readonly sandboxProblem?: string | undefined;
}
