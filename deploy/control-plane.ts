import type { ApiServices } from '#api/create-api.ts';
import { createAccounts } from '#shared/core/accounts/accounts-service.ts';
import { createApiTokens } from '#shared/core/accounts/api-tokens-service.ts';
import { createSessions } from '#shared/core/accounts/sessions-service.ts';
import { createSshKeys } from '#shared/core/accounts/ssh-keys-service.ts';
import { createTeam } from '#shared/core/accounts/team-service.ts';
import { enqueueAddonJobs, runEnsureAddonJob } from '#shared/core/addons/addon-job.ts';
import { createAddons } from '#shared/core/addons/addons-service.ts';
import { listAppIdsWithAddons } from '#shared/core/addons/addons-store.ts';
import { runEnsureAppJob } from '#shared/core/apps/app-environment.ts';
import { enqueueEnsureWorkload } from '#shared/core/apps/app-jobs.ts';
import { createApps } from '#shared/core/apps/apps-service.ts';
import { listReleasedAppIds } from '#shared/core/apps/apps-store.ts';
import { runSettleDomainJob } from '#shared/core/apps/domain-verification.ts';
import { createDomains } from '#shared/core/apps/domains-service.ts';
import { createBuildCache, runDeleteCacheJob } from '#shared/core/builds/build-cache-service.ts';
import { runBuildJob } from '#shared/core/builds/build-job.ts';
import { createBuilds } from '#shared/core/builds/builds-service.ts';
import { runCollectImagesJob } from '#shared/core/builds/image-collection.ts';
import { createPipelineAccess } from '#shared/core/builds/pipeline-access.ts';
import { listRetainedCommits } from '#shared/core/builds/retained-commits.ts';
import type { Context } from '#shared/core/context.ts';
import { createAppDeletion } from '#shared/core/deletion/app-deletion-service.ts';
import { runPurgeJob } from '#shared/core/deletion/purge-job.ts';
import type { Pushes } from '#shared/core/pushes/pushes.ts';
import { createPushes } from '#shared/core/pushes/pushes-service.ts';
import { createTenantQuotas } from '#shared/core/quotas/quotas-service.ts';
import { createConfig } from '#shared/core/releases/config-service.ts';
import { runDeployJob } from '#shared/core/releases/deploy-job.ts';
import { readLoggedEnvironments } from '#shared/core/releases/logged-environments.ts';
import { createProcesses, runEnsureWorkloadJob, runRestartJob } from '#shared/core/releases/processes-service.ts';
import { createReleases } from '#shared/core/releases/releases-service.ts';
import { createRuns } from '#shared/core/releases/runs-service.ts';
import { createSettings } from '#shared/core/releases/settings-service.ts';
import { createCommits } from '#shared/core/repositories/commits-service.ts';
import { createGitSources } from '#shared/core/repositories/git-sources-service.ts';
import { runCollectGarbageJob, runRepackJob } from '#shared/core/repositories/repository-maintenance.ts';
import { createAppMetrics } from '#shared/core/telemetry/app-metrics-service.ts';
import { createLogs } from '#shared/core/telemetry/logs-service.ts';
import { runReportJob } from '#shared/core/webhooks/report-job.ts';
import { runLookJob } from '#shared/core/webhooks/source-look-job.ts';
import { createWebhooks } from '#shared/core/webhooks/webhooks-service.ts';
import type { JobHandlers } from '#shared/jobs/jobs.ts';

/** Everything that entry points may ask of core: what the API asks, and pushes. */
export interface Services extends ApiServices {
  pushes: Pushes;
}

/** What the entry points ask. */
export function createServices(context: Context): Services {
  return {
    accounts: createAccounts(context),
    sessions: createSessions(context),
    sshKeys: createSshKeys(context),
    apiTokens: createApiTokens(context),
    team: createTeam(context),
    apps: createApps(context),
    appDeletion: createAppDeletion(context),
    builds: createBuilds(context),
    buildCache: createBuildCache(context),
    pipelineAccess: createPipelineAccess(context),
    releases: createReleases(context),
    commits: createCommits(context),
    config: createConfig(context),
    processes: createProcesses(context),
    runs: createRuns(context),
    settings: createSettings(context),
    addons: createAddons(context),
    domains: createDomains(context),
    logs: createLogs(context, (app) => readLoggedEnvironments(context, app)),
    metrics: createAppMetrics(context),
    pushes: createPushes(context),
    gitSources: createGitSources(context),
    quotas: createTenantQuotas(context),
    webhooks: createWebhooks(context),
  };
}

/** What a worker runs. */
export function createJobHandlers(context: Context): JobHandlers {
  return {
    build: ({ buildId }, signal) => runBuildJob(context, buildId, signal),
    'delete-cache': ({ appId }) => runDeleteCacheJob(context, appId),
    'collect-images': ({ appId }) => runCollectImagesJob(context, appId),
    deploy: ({ deployId }, signal) => runDeployJob(context, deployId, signal),
    'deploy-after-command': ({ deployId }, signal) => runDeployJob(context, deployId, signal),
    'ensure-app': ({ appId }) => runEnsureAppJob(context, appId),
    'repair-app': ({ appId }) => runEnsureAppJob(context, appId),
    'ensure-workload': ({ appId }) => runEnsureWorkloadJob(context, appId),
    'ensure-addon': ({ appId, addonType }, signal) => runEnsureAddonJob(context, appId, addonType, signal),
    restart: ({ appId }) => runRestartJob(context, appId),
    'look-at-source': ({ appId, failures }, signal) => runLookJob(context, appId, failures, signal),
    'report-build': ({ buildId, failures }, signal) => runReportJob(context, buildId, failures, signal),
    'settle-domain': ({ appId, host }) => runSettleDomainJob(context, appId, host),
    'purge-app': ({ appId }) => runPurgeJob(context, appId),
    repack: ({ repositoryId }, signal) => runRepackJob(context, repositoryId, signal),
    'collect-garbage': ({ repositoryId }, signal) => runCollectGarbageJob(context, repositoryId, listRetainedCommits, signal),
  };
}

/**
 * After a start of the platform: every app that should run gets a job that makes it run, behind its unfinished deploys
 * and behind those of its add-ons.
 */
export async function resumeApps(context: Context): Promise<number> {
  const { db } = context;
  for (const id of await listAppIdsWithAddons(db)) await enqueueAddonJobs(context, db, id);
  const released = await listReleasedAppIds(db);
  for (const id of released) await enqueueEnsureWorkload(context, db, id);
  return released.length;
}
