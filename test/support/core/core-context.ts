import type { Clock } from '#shared/clock.ts';
import { createBindings } from '#shared/core/addons/bindings.ts';
import { createAddresses } from '#shared/core/addresses.ts';
import type { Context } from '#shared/core/context.ts';
import type { Db } from '#shared/database/db.ts';
import { createFakeResolver } from '#shared/dns/fake-resolver.ts';
import type { GitStorage } from '#shared/git/git-storage.ts';
import { createFakeIdentity } from '#shared/identity/fake-identity.ts';
import { graphileJobs } from '#shared/jobs/graphile/graphile-jobs.ts';
import type { Log } from '#shared/log.ts';
import type { Platform } from '#shared/platform/platform.ts';
import { createFakeEventLimits } from '#shared/rate-limits/fake-event-limits.ts';
import { createSecretBox } from '#shared/secret-box.ts';
import { createOutsideSourceHosts } from '#shared/sources/outside-source-hosts.ts';
import { createWakeups } from '#shared/wakeups/wakeups.ts';
import { ampleQuotas } from '#test/support/core/ample-quotas.ts';

/** What deliveries are signed with. */
export const coreWebhookSecret = 'of the git host';

export interface CoreDependencies {
  /** Of a PostgreSQL that has the jobs' schema too. */
  db: Db;
  log: Log;
  clock: Clock;
  platform: Platform;
  git: GitStorage;
  /** 32 bytes in base64; another one each time when not given. */
  secretKey?: string;
}

/** The core as in production but for its dependencies: users and names are in memory, sources may be on this machine. */
export async function createCoreContext({ db, log, clock, platform, git, secretKey }: CoreDependencies): Promise<Context> {
  const baseUrl = 'http://localhost:8080';
  const key = secretKey === undefined ? crypto.getRandomValues(new Uint8Array(32)) : Uint8Array.fromBase64(secretKey);
  const secrets = await createSecretBox(key);
  return {
    db,
    clock,
    log,
    platform,
    git,
    sources: createOutsideSourceHosts({ allowPrivate: true, seconds: 30 }),
    jobs: graphileJobs,
    identity: createFakeIdentity({ clock, issuer: `${baseUrl}/v1/auth` }),
    secrets,
    bindings: createBindings({ secrets }),
    addresses: createAddresses({ baseUrl, appsDomain: 'apps.localhost', httpPort: 8080, httpsPort: 8443, sshPort: 2222 }),
    wakeups: createWakeups(),
    eventLimits: createFakeEventLimits(() => clock.now().getTime()),
    resolver: createFakeResolver(),
    settings: {
      signup: 'open',
      signUpsPerAddress: 20,
      canaryStepSeconds: 0,
      releaseCommandSeconds: 600,
      quotas: ampleQuotas,
      keptReleases: 10,
      orphanDays: 30,
      webhookSecret: coreWebhookSecret,
      baseUrl,
    },
  };
}
