import type { Clock } from '#shared/clock.ts';
import type { Addresses } from '#shared/core/addresses.ts';
import type { Bindings } from '#shared/core/bindings.ts';
import type { Db } from '#shared/database/db.ts';
import type { Resolver } from '#shared/dns/resolver.ts';
import type { GitStorage } from '#shared/git/git-storage.ts';
import type { Identity } from '#shared/identity/identity.ts';
import type { Jobs } from '#shared/jobs/jobs.ts';
import type { Log } from '#shared/log.ts';
import type { Platform } from '#shared/platform/platform.ts';
import type { EventLimits } from '#shared/rate-limits/event-limits.ts';
import type { SecretBox } from '#shared/secret-box.ts';
import type { Settings } from '#shared/settings/settings.ts';
import type { SourceHosts } from '#shared/sources/source-hosts.ts';
import type { Wakeups } from '#shared/wakeups/wakeups.ts';

/** Everything that core depends on. Mains create it from drivers, tests from fakes. */
export interface Context {
  db: Db;
  clock: Clock;
  log: Log;
  platform: Platform;
  git: GitStorage;
  sources: SourceHosts;
  jobs: Jobs;
  identity: Identity;
  secrets: SecretBox;
  addresses: Addresses;
  bindings: Bindings;
  wakeups: Wakeups;
  eventLimits: Pick<EventLimits, 'take' | 'giveBack'>;
  resolver: Resolver;
  settings: Pick<
    Settings,
    | 'signup'
    | 'signUpsPerAddress'
    | 'canaryStepSeconds'
    | 'releaseCommandSeconds'
    | 'quotas'
    | 'keptReleases'
    | 'orphanDays'
    | 'webhookSecret'
    | 'baseUrl'
  >;
}
