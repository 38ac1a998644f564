import type { Migration } from 'kysely/migration';
import * as controlPlane from '#shared/database/migrations/0001-control-plane.ts';
import * as rateLimitStorage from '#shared/database/migrations/0002-rate-limit-storage.ts';
import * as addons from '#shared/database/migrations/0003-addons.ts';
import * as webhooks from '#shared/database/migrations/0004-webhooks.ts';
import * as metricsAndDomains from '#shared/database/migrations/0005-metrics-and-domains.ts';
import * as tokensAndTeams from '#shared/database/migrations/0006-tokens-and-teams.ts';
import * as announcedKeys from '#shared/database/migrations/0007-announced-keys.ts';
import * as loginLimits from '#shared/database/migrations/0008-login-limits.ts';
import * as latencies from '#shared/database/migrations/0009-latencies.ts';
import * as once from '#shared/database/migrations/0010-once.ts';
import * as appIndexes from '#shared/database/migrations/0011-app-indexes.ts';
import * as packReplacement from '#shared/database/migrations/0012-pack-replacement.ts';
import * as cachesBegun from '#shared/database/migrations/0013-caches-begun.ts';
import * as buildLines from '#shared/database/migrations/0014-build-lines.ts';
import * as purges from '#shared/database/migrations/0015-purges.ts';
import * as buildTokens from '#shared/database/migrations/0016-build-tokens.ts';
import * as refsOfDeploys from '#shared/database/migrations/0017-refs-of-deploys.ts';
import * as eventLimits from '#shared/database/migrations/0018-event-limits.ts';
import * as collectedImages from '#shared/database/migrations/0019-collected-images.ts';
import * as sourceLooks from '#shared/database/migrations/0020-source-looks.ts';
import * as sessions from '#shared/database/migrations/0021-sessions.ts';
import * as quotas from '#shared/database/migrations/0022-quotas.ts';
import * as appSettings from '#shared/database/migrations/0023-app-settings.ts';
import * as sourceDirectory from '#shared/database/migrations/0024-source-directory.ts';
import * as commitTitles from '#shared/database/migrations/0025-commit-titles.ts';
import * as sourceTokens from '#shared/database/migrations/0026-source-tokens.ts';
import * as runs from '#shared/database/migrations/0027-runs.ts';
import * as databaseOwner from '#shared/database/migrations/0028-database-owner.ts';
import * as clientVariables from '#shared/database/migrations/0029-client-variables.ts';
import * as orphans from '#shared/database/migrations/0030-orphans.ts';

/** In order, forward only: a name that has run anywhere is never changed or reused. */
export const migrations: Record<string, Migration> = {
  '0001-control-plane': controlPlane,
  '0002-rate-limit-storage': rateLimitStorage,
  '0003-addons': addons,
  '0004-webhooks': webhooks,
  '0005-metrics-and-domains': metricsAndDomains,
  '0006-tokens-and-teams': tokensAndTeams,
  '0007-announced-keys': announcedKeys,
  '0008-login-limits': loginLimits,
  '0009-latencies': latencies,
  '0010-once': once,
  '0011-app-indexes': appIndexes,
  '0012-pack-replacement': packReplacement,
  '0013-caches-begun': cachesBegun,
  '0014-build-lines': buildLines,
  '0015-purges': purges,
  '0016-build-tokens': buildTokens,
  '0017-refs-of-deploys': refsOfDeploys,
  '0018-event-limits': eventLimits,
  '0019-collected-images': collectedImages,
  '0020-source-looks': sourceLooks,
  '0021-sessions': sessions,
  '0022-quotas': quotas,
  '0023-app-settings': appSettings,
  '0024-source-directory': sourceDirectory,
  '0025-commit-titles': commitTitles,
  '0026-source-tokens': sourceTokens,
  '0027-runs': runs,
  '0028-database-owner': databaseOwner,
  '0029-client-variables': clientVariables,
  '0030-orphans': orphans,
};
