import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { runBuildJob } from '#shared/core/builds/build-job.ts';
import { git } from '#shared/git/testing/git-client.ts';
import { type CoreFixture, createCoreFixture } from '#test/support/core/core-fixture.ts';

let core: CoreFixture;
let owner: Principal;
beforeAll(async () => {
  core = await createCoreFixture();
  owner = await core.signUp();
});
afterAll(() => core?.close());

const page = { limit: 1 };

it('a build and its release show the first line of the message and the author of their commit', async () => {
  const app = await core.createApp(owner);
  await app.commit();
  await git(app.directory, 'commit', '-q', '--amend', '--author', 'Åsa Ü <asa@example.com>', '-m', 'Greet in German\n\nAt last.');
  await app.push('-o', 'detach', 'main');
  const { builds, releases } = core.services;
  const { id } = await core.latestBuild(app.id);
  expect(await builds.readBuild(owner, app.id, id)).toMatchObject({ commitTitle: null, commitAuthor: null });
  await runBuildJob(core.context, id, new AbortController().signal);
  const shown = { commitTitle: 'Greet in German', commitAuthor: 'Åsa Ü <asa@example.com>' };
  expect(await builds.readBuild(owner, app.id, 'latest')).toMatchObject({ status: 'succeeded', ...shown });
  expect((await builds.listBuilds(owner, app.id, page)).items).toMatchObject([shown]);
  expect((await releases.listReleases(owner, app.id, page)).items).toMatchObject([{ version: 1, ...shown }]);
});

it('what a message should not have is left out of the title', async () => {
  const app = await core.createApp(owner);
  await app.commit();
  const author = ['--author', 'A\tB <a@example.com>'];
  await git(
    app.directory,
    'commit',
    '-q',
    '--amend',
    ...author,
    '--cleanup=verbatim',
    '-m',
    `\n\nRed \x1b[31m and ${'x'.repeat(300)}`,
  );
  await app.push('-o', 'detach', 'main');
  const { id } = await core.latestBuild(app.id);
  await runBuildJob(core.context, id, new AbortController().signal);
  const { commitTitle, commitAuthor } = await core.services.builds.readBuild(owner, app.id, id);
  expect(commitTitle).toMatch(/^Red \[31m and x+$/);
  expect(commitTitle).toHaveLength(200);
  expect(commitAuthor).toBe('A B <a@example.com>');
});
