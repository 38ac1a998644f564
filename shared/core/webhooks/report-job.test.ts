import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { readLatestBuild } from '#shared/core/builds/builds-store.ts';
import { runReportJob } from '#shared/core/webhooks/report-job.ts';
import { AppError } from '#shared/errors.ts';
import type { BuildId } from '#shared/ids.ts';
import type { JobPayloads } from '#shared/jobs/jobs.ts';
import type { CommitStatus, PullRequestComment } from '#shared/sources/source-hosts.ts';
import { SourceUnavailable } from '#shared/sources/source-unavailable.ts';
import { createGitHost, type GitHostFixture, push } from '#test/support/api/git-host.ts';
import { createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

let test: TestApi;
let ada: TestUser;
let host: GitHostFixture;
let statuses: CommitStatus[];
let comments: PullRequestComment[];
let fault: Error | undefined;
/** Builds that are to be shown. */
const enqueued: BuildId[] = [];
beforeAll(async () => {
  test = await createTestApi();
  host = createGitHost(test);
  ada = await test.signUp();
  const { jobs } = test.context;
  const enqueue = jobs.enqueue.bind(jobs);
  jobs.enqueue = async (db, name, payload, options) => {
    if (name === 'report-build') enqueued.push((payload as JobPayloads['report-build']).buildId);
    return enqueue(db, name, payload, options);
  };
  test.context.sources.setCommitStatus = async (status) => {
    if (fault !== undefined) throw fault;
    statuses.push(status);
  };
  test.context.sources.commentOnPullRequests = async (comment) => comments.push(comment);
});
afterAll(() => test?.close());
beforeEach(() => {
  [statuses, comments, fault] = [[], [], undefined];
});

const never = new AbortController().signal;
const report = (build: { id: string }, failures = 0) => runReportJob(test.context, build.id as BuildId, failures, never);

/** An app with a token that follows a repository, and the build of its first push. */
async function follow(repository: string, json: object = { token: 'secret-token' }, branch = 'main') {
  const app = await test.createApp(ada);
  const url = `https://git.example.com/ada/${repository}.git`;
  host.pushTo(`ada/${repository}`, 'main');
  await test.ask('PUT', `/v1/apps/${app.id}/git`, { as: ada, json: { url, branch: 'main', ...json } });
  const payload = host.pushTo(`ada/${repository}`, branch);
  expect((await host.deliver(payload)).body.data.outcome).toBe('started');
  const { db } = test.context;
  const preview = await db.selectFrom('apps').select('id').where('parent_app_id', '=', app.id).executeTakeFirst();
  const build = await readLatestBuild(db, preview?.id ?? app.id);
  if (build === undefined) throw new Error('There is no build.');
  const end = (status: 'failed', error: string) =>
    db.updateTable('builds').set({ status, error }).where('id', '=', build.id).execute();
  return { app, build, commit: payload.after, end };
}

describe('a build of a repository at a git host', () => {
  it('is shown there as it goes, by the token, at its commit', async () => {
    const { app, build, commit, end } = await follow('shown');
    await report(build);
    await end('failed', 'The build script failed.');
    await report(build);
    const target = { url: 'https://git.example.com/ada/shown.git', kind: 'github', token: { value: 'secret-token' }, commit };
    expect(statuses).toMatchObject([
      { ...target, state: 'pending', context: `paas/${app.name}`, description: 'Waiting to be built.' },
      { ...target, state: 'failure', description: 'The build script failed.' },
    ]);
    expect(comments).toEqual([]);
  });

  it('is shown from its start on, and as canceled when a newer one takes its place', async () => {
    const { app, build } = await follow('enqueued');
    expect(enqueued).toContain(build.id);
    enqueued.length = 0;
    await host.deliver(host.pushTo('ada/enqueued', 'main'));
    const [newer] = await host.readBuilds(ada, app.id);
    expect(new Set(enqueued)).toEqual(new Set([build.id, newer?.id]));
    await report(build);
    expect(statuses.at(-1)).toMatchObject({ state: 'error', description: 'Superseded by a newer push.' });
  });

  it('of a preview that failed is told in the pull requests of its branch', async () => {
    const { build, commit, end } = await follow('preview', undefined, 'feature');
    await report(build);
    expect(comments).toEqual([]);
    await end('failed', 'The build script failed.');
    await report(build);
    expect(comments).toMatchObject([
      { branch: 'feature', text: `The preview of ${commit.slice(0, 8)} did not go live: The build script failed.` },
    ]);
  });

  it('is not shown without a token', async () => {
    const { build } = await follow('public', {});
    await report(build);
    expect(statuses).toEqual([]);
  });

  it('is shown again later when the host is down, and never when it refuses', async () => {
    const { build } = await follow('down');
    enqueued.length = 0;
    fault = new SourceUnavailable('git.example.com could not be reached.');
    await report(build);
    await report(build, 5);
    expect(enqueued).toEqual([build.id]);
    fault = new AppError('validation_failed', 'git.example.com answered 403.');
    await report(build);
    expect(enqueued).toEqual([build.id]);
  });

  it('is shown in a pull request that is opened later', async () => {
    const { build } = await follow('late', undefined, 'feature');
    const { repository } = push('ada/late');
    enqueued.length = 0;
    const answer = await host.deliver(
      { action: 'opened', pull_request: { head: { ref: 'feature' } }, repository },
      { 'x-github-event': 'pull_request' },
    );
    expect([answer.status, answer.body.data]).toMatchObject([
      200,
      { outcome: 'ignored', message: expect.stringContaining('preview') },
    ]);
    expect(enqueued).toEqual([build.id]);
  });
});
