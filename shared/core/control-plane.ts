import { createAccounts } from '#shared/core/accounts.ts';
import { enqueueAddonJobs, runEnsureAddonJob } from '#shared/core/addon-job.ts';
import { createAddons } from '#shared/core/addons.ts';
import { createApiTokens } from '#shared/core/api-tokens.ts';
import { createAppMetrics } from '#shared/core/app-metrics.ts';
import { createApps } from '#shared/core/apps.ts';
import { createBuildCache } from '#shared/core/build-cache.ts';
import { runBuildJob } from '#shared/core/build-job.ts';
import { createBuilds } from '#shared/core/builds.ts';
import { createConfig } from '#shared/core/config.ts';
import type { Context } from '#shared/core/context.ts';
import { runDeployJob } from '#shared/core/deploy-job.ts';
import { runSettleDomainJob } from '#shared/core/domain-settlement.ts';
import { createDomains } from '#shared/core/domains.ts';
import { createGitSources } from '#shared/core/git-sources.ts';
import { createLogs } from '#shared/core/logs.ts';
import { createProcesses, runEnsureWorkloadJob, runRestartJob } from '#shared/core/processes.ts';
import { runPurgeJob } from '#shared/core/purge-job.ts';
import { createPushes } from '#shared/core/pushes.ts';
import { createReleases } from '#shared/core/releases.ts';
import { runCollectGarbageJob, runRepackJob } from '#shared/core/repository-maintenance.ts';
import type { Services } from '#shared/core/services.ts';
import { createSshKeys } from '#shared/core/ssh-keys.ts';
import { createTeam } from '#shared/core/team.ts';
import { createWebhooks } from '#shared/core/webhooks.ts';
import type { AppId, BuildId, DeployId, RepositoryId } from '#shared/ids.ts';
import type { JobHandlers } from '#shared/jobs/jobs.ts';
import type { AddonType } from '#shared/platform/addons.ts';

/** What the doors ask. */
export function createServices(context: Context): Services {
  return {
    accounts: createAccounts(context),
    sshKeys: createSshKeys(context),
    apiTokens: createApiTokens(context),
    team: createTeam(context),
    apps: createApps(context),
    builds: createBuilds(context),
    buildCache: createBuildCache(context),
    releases: createReleases(context),
    config: createConfig(context),
    processes: createProcesses(context),
    addons: createAddons(context),
    domains: createDomains(context),
    logs: createLogs(context),
    metrics: createAppMetrics(context),
    pushes: createPushes(context),
    gitSources: createGitSources(context),
    webhooks: createWebhooks(context),
  };
}

/** What a worker runs. */
export function createJobHandlers(context: Context): JobHandlers {
  return {
    build: ({ buildId }, signal) => runBuildJob(context, buildId as BuildId, signal),
    deploy: ({ deployId }, signal) => runDeployJob(context, deployId as DeployId, signal),
    'ensure-workload': ({ appId }) => runEnsureWorkloadJob(context, appId as AppId),
    'ensure-addon': ({ appId, addonType }, signal) => runEnsureAddonJob(context, appId as AppId, addonType as AddonType, signal),
    restart: ({ appId }) => runRestartJob(context, appId as AppId),
    'settle-domain': ({ appId, host }) => runSettleDomainJob(context, appId as AppId, host),
    'purge-app': ({ appId }) => runPurgeJob(context, appId as AppId),
    repack: ({ repositoryId }, signal) => runRepackJob(context, repositoryId as RepositoryId, signal),
    'collect-garbage': ({ repositoryId }, signal) => runCollectGarbageJob(context, repositoryId as RepositoryId, signal),
  };
}

/**
 * After a start of the platform: every app that should run gets a job that makes it run, behind its unfinished deploys
 * and behind those of its add-ons.
 */
export async function resumeApps(context: Context): Promise<number> {
  const { db, jobs } = context;
  const withAddons = await db
    .selectFrom('apps')
    .select('id')
    .where('deleted_at', 'is', null)
    .where('id', 'in', db.selectFrom('app_addons').select('app_id'))
    .execute();
  for (const { id } of withAddons) await enqueueAddonJobs(context, db, id);
  const rows = await db
    .selectFrom('apps')
    .select('id')
    .where('deleted_at', 'is', null)
    .where('current_release_id', 'is not', null)
    .execute();
  for (const { id } of rows)
    await jobs.enqueue(db, 'ensure-workload', { appId: id }, { queue: `deploy:${id}`, key: `ensure:${id}` });
  return rows.length;
}
