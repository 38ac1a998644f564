import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { runBuildJob } from '#shared/core/builds/build-job.ts';
import { runDeployJob } from '#shared/core/releases/deploy-job.ts';
import type { AppLogEntry } from '#shared/platform/app-logs.ts';
import { type CoreFixture, createCoreFixture, type FixtureApp } from '#test/support/core/core-fixture.ts';

const never = new AbortController().signal;

let core: CoreFixture;
let owner: Principal;
let app: FixtureApp;
beforeAll(async () => {
  core = await createCoreFixture();
  owner = await core.signUp();
  app = await core.createApp(owner);
});
afterAll(() => core.close());

const print = (message: string, releaseVersion: number): void =>
  core.platform.logs.write(app.id, { process: 'web.1', releaseVersion, message });
const readMessages = async (): Promise<string[]> =>
  (await core.services.logs.readLogs(owner, app.id, { lines: 100 })).map(({ message }) => message);

it('an app that prints its secrets does not show them in its logs, whichever release printed them', async () => {
  await app.commit();
  await app.push('-o', 'detach', 'main');
  await core.services.config.changeConfig(owner, app.id, { API_TOKEN: 'first-secret-value' });
  await runBuildJob(core.context, (await core.latestBuild(app.id)).id, never);
  await core.services.config.changeConfig(owner, app.id, { API_TOKEN: 'second-secret-value', COLOR: 'turquoise' });
  print('first-secret-value turquoise', 1);
  print(`token=${btoa('second-secret-value')}`, 2);
  expect(await readMessages()).toEqual(['[redacted] turquoise', 'token=[redacted]']);
});

it('who follows the logs does not see a secret that is set meanwhile either', async () => {
  const stop = new AbortController();
  const entries = await core.services.logs.followLogs(owner, app.id, { lines: 1 }, stop.signal);
  const iterator = entries[Symbol.asyncIterator]();
  await iterator.next();
  await core.services.config.changeConfig(owner, app.id, { API_TOKEN: 'third-secret-value' });
  print('now third-secret-value', 3);
  const { value } = (await iterator.next()) as IteratorResult<AppLogEntry, AppLogEntry>;
  expect(value.message).toBe('now [redacted]');
  stop.abort();
  await iterator.return?.();
});

it('logs are shown although the variables of an old release cannot be read', async () => {
  await core.context.db.updateTable('releases').set({ config: 'v1.sealed.otherwise' }).where('app_id', '=', app.id).execute();
  expect(await readMessages()).toContain('now [redacted]');
});

it('neither the log nor the error of a deploy contains what a release command prints of secrets', async () => {
  await app.commit({ Procfile: 'web: serve\nrelease: migrate\n' });
  await app.push('-o', 'detach', 'main');
  const build = await core.latestBuild(app.id);
  await runBuildJob(core.context, build.id, never);
  core.script = {
    boot: () => ({ exitCode: 3, output: ['cannot use third-secret-value'] }),
    run: (_command, line) => {
      line('migrating with third-secret-value');
      return Promise.resolve(0);
    },
  };
  const [deploy] = (await core.services.releases.listDeploys(owner, app.id, { limit: 1 })).items;
  if (deploy === undefined) throw new Error('the build made a deploy');
  await runDeployJob(core.context, deploy.id, never);
  const log = (await core.services.builds.readBuildLog(owner, app.id, build.id, {})).map(({ line }) => line).join('\n');
  expect(log).toContain('migrating with [redacted]');
  expect(log).toContain('cannot use [redacted]');
  expect(log).not.toContain('third-secret-value');
});
