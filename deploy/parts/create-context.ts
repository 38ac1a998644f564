import { join } from 'node:path';
import type { OpenDatabase } from '#deploy/parts/open-database.ts';
import type { StartOptions } from '#deploy/parts/start-options.ts';
import { systemClock } from '#shared/clock.ts';
import { createBindings } from '#shared/core/addons/bindings.ts';
import { createAddresses } from '#shared/core/addresses.ts';
import type { Context } from '#shared/core/context.ts';
import { createNodeResolver } from '#shared/dns/node-resolver.ts';
import { graphileJobs } from '#shared/jobs/graphile/graphile-jobs.ts';
import { limits } from '#shared/limits.ts';
import { measureMaintenance } from '#shared/metrics/measured-maintenance.ts';
import type { Metrics } from '#shared/metrics/metrics.ts';
import { createOutsideSourceHosts } from '#shared/sources/outside-source-hosts.ts';

/** The drivers that were started, beside those that need no start. */
export interface ContextParts extends Pick<Context, 'platform' | 'git' | 'identity' | 'secrets' | 'eventLimits'> {
  database: OpenDatabase;
  metrics: Metrics;
}

/** What core depends on, with real drivers; the maintenance of repositories is measured. */
export function createContext(parts: ContextParts, { settings, dataDir, log }: StartOptions): Context {
  const { database, metrics, platform, git, identity, secrets, eventLimits } = parts;
  return {
    db: database.db,
    clock: systemClock,
    log,
    platform,
    git: { ...git, maintenance: measureMaintenance(git.maintenance, metrics) },
    sources: createOutsideSourceHosts({
      allowPrivate: settings.allowPrivateSources,
      seconds: limits.push.seconds,
      directory: join(dataDir, 'sources'),
    }),
    jobs: graphileJobs,
    identity,
    secrets,
    addresses: createAddresses(settings),
    bindings: createBindings({ secrets }),
    wakeups: database.wakeups,
    eventLimits,
    resolver: createNodeResolver(),
    settings,
  };
}
