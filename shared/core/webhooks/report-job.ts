import { enqueueReport } from '#shared/core/apps/app-jobs.ts';
import { type AppRow, readAppById } from '#shared/core/apps/apps-store.ts';
import { type BuildRow, readBuildById } from '#shared/core/builds/builds-store.ts';
import { isRepository } from '#shared/core/builds/repository-source.ts';
import type { Context } from '#shared/core/context.ts';
import { type DeployRow, readDeployOfRelease } from '#shared/core/releases/deploys-store.ts';
import { readSourceToken } from '#shared/core/repositories/source-tokens.ts';
import { listSourceDeliveries } from '#shared/core/webhooks/source-deliveries-store.ts';
import type { Db } from '#shared/database/db.ts';
import { addSeconds } from '#shared/durations.ts';
import { AppError } from '#shared/errors.ts';
import type { AppId, BuildId, ObjectId } from '#shared/ids.ts';
import type { CommitStatus, GitHostTarget } from '#shared/sources/source-hosts.ts';
import { SourceUnavailable } from '#shared/sources/source-unavailable.ts';

/** After a failure: 15 s, 1 min, 4 min and so on. */
const firstRetrySeconds = 15;
const mostRetries = 5;

/**
 * Tells the git host how a build goes, as it is now: a status of the commit, and a comment on the pull requests of a preview.
 * Does nothing for an app without a token, and for a git host whose API is not known.
 */
export async function runReportJob(context: Context, buildId: BuildId, failures: number, signal: AbortSignal): Promise<void> {
  const { db, clock, log } = context;
  const build = await readBuildById(db, buildId);
  const app = build && (await readAppById(db, build.app_id));
  if (build === undefined || app === undefined) return;
  try {
    await report(context, app, build, signal);
  } catch (error) {
    if (signal.aborted || !(error instanceof AppError) || error.code === 'internal') throw error;
    log.info('A git host could not be told how a build went.', { buildId, error });
    if (!(error instanceof SourceUnavailable) || failures === mostRetries) return;
    const runAt = addSeconds(clock.now(), firstRetrySeconds * 4 ** failures);
    await enqueueReport(context, db, app.id, { buildId, runAt, failures: failures + 1 });
  }
}

async function report(context: Context, app: AppRow, build: BuildRow, signal: AbortSignal): Promise<void> {
  const { db, sources, addresses } = context;
  const { source, commit } = build;
  if (!isRepository(source) || commit === null) return;
  const owner = app.parent_app_id ?? app.id;
  const token = await readSourceToken(context, owner, source.url);
  const kind = token && (await findKind(db, owner, source.url));
  if (token === undefined || kind === undefined) return;
  const target: GitHostTarget = { url: source.url, kind, token, signal };
  const deploy = build.release_id === null ? undefined : await readDeployOfRelease(db, build.release_id);
  const state = describeState(build, deploy);
  const address = addresses.webUrl(app.name);
  await sources.setCommitStatus({
    ...target,
    ...state,
    commit: commit as ObjectId,
    context: `paas/${app.name}`,
    targetUrl: state.state === 'success' ? address : undefined,
  });
  if (app.preview_branch === null || (deploy?.status !== 'live' && state.state !== 'failure')) return;
  const what = deploy?.status === 'live' ? `is live at ${address}` : `did not go live: ${state.description}`;
  await sources.commentOnPullRequests({
    ...target,
    branch: app.preview_branch,
    marker: `<!-- paas preview ${app.id} -->`,
    text: `The preview of ${commit.slice(0, 8)} ${what}`,
  });
}

function describeState(build: BuildRow, deploy: DeployRow | undefined): Pick<CommitStatus, 'state' | 'description'> {
  if (build.status === 'queued') return { state: 'pending', description: 'Waiting to be built.' };
  if (build.status === 'running') return { state: 'pending', description: 'Building.' };
  if (build.status === 'failed') return { state: 'failure', description: build.error ?? 'The build failed.' };
  if (build.status === 'canceled') return { state: 'error', description: build.error ?? 'Canceled.' };
  switch (deploy?.status) {
    case 'live':
      return { state: 'success', description: 'Deployed.' };
    case 'failed':
    case 'aborted':
      return { state: 'failure', description: deploy.error ?? 'The release did not go live.' };
    case 'superseded':
      return { state: 'error', description: deploy.error ?? 'Superseded by a newer release.' };
    default:
      return { state: 'pending', description: 'Rolling out.' };
  }
}

const knownHosts: Readonly<Record<string, GitHostTarget['kind']>> = {
  'github.com': 'github',
  'gitlab.com': 'gitlab',
  'gitea.com': 'gitea',
  'codeberg.org': 'gitea',
};
const kindsOfProviders: Readonly<Record<string, GitHostTarget['kind']>> = {
  github: 'github',
  gitlab: 'gitlab',
  gitea: 'gitea',
  forgejo: 'gitea',
};

/** By its name, or by how its last delivery was written. */
async function findKind(db: Db, appId: AppId, url: string): Promise<GitHostTarget['kind'] | undefined> {
  const known = knownHosts[new URL(url).hostname];
  if (known !== undefined) return known;
  const deliveries = await listSourceDeliveries(db, appId);
  return deliveries.map(({ provider }) => kindsOfProviders[provider]).find((kind) => kind !== undefined);
}
