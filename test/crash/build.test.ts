import { type ChildProcess, spawn } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AppId, type BuildId, newUuid } from '#shared/ids.ts';
import { buildSpec, buildToEnd, sourceOf, watchToEnd } from '#shared/platform/testing/build-specs.ts';
import { endlessApp, markerOf } from '#test/support/builds/endless-app.ts';
import { openTestBuilds, type TestBuilds } from '#test/support/builds/test-builds.ts';

let fixture: TestBuilds;
beforeAll(async () => {
  fixture = await openTestBuilds();
});
afterAll(() => fixture.stop());

/** @returns the command lines on this machine that have the build's marker */
async function findProcesses(buildId: BuildId): Promise<readonly string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
  return lines.filter((line) => line.startsWith('sleep\0') && line.includes(markerOf(buildId)));
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 20));
}

/** Starts a build in a process of its own. Resolves when the build's own processes run. */
async function startBuildProcess(appId: AppId, buildId: BuildId): Promise<ChildProcess> {
  const script = fileURLToPath(new URL('../support/builds/build-process.ts', import.meta.url));
  const builder = spawn(process.execPath, [script, fixture.dataDir, appId, buildId], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  builder.stdout?.on('data', (chunk) => {
    output += String(chunk);
  });
  await until(async () => output.includes('started') && (await findProcesses(buildId)).length === 2);
  return builder;
}

describe('a build', () => {
  it('that is canceled leaves no process, not even one in a session of its own, and no directory', async () => {
    const spec = endlessApp();
    await fixture.builds.startBuild(spec);
    await until(async () => (await findProcesses(spec.buildId)).length === 2);
    await fixture.builds.cancelBuild(spec.buildId);
    expect((await watchToEnd(fixture.builds, spec.buildId)).outcome).toEqual({ status: 'canceled' });
    expect(await findProcesses(spec.buildId)).toEqual([]);
    expect(await readdir(`${fixture.dataDir}/builds`)).toEqual([]);
  });

  it('ends when the process that runs it is killed, and can be run again under its id', async () => {
    const [appId, buildId] = [newUuid<AppId>(), newUuid<BuildId>()];
    const builder = await startBuildProcess(appId, buildId);
    builder.kill('SIGKILL');
    await until(async () => (await findProcesses(buildId)).length === 0);
    expect(await readdir(`${fixture.dataDir}/builds`)).toEqual([buildId]);

    const again = buildSpec(sourceOf({ Procfile: 'web: ./run' }), { appId, buildId, cacheState: 'Warm' });
    expect((await buildToEnd(fixture.builds, again)).outcome).toMatchObject({ status: 'succeeded' });
    expect(await readdir(`${fixture.dataDir}/builds`)).toEqual([]);
  });

  it('that still runs in another process is ended before it is run again', async () => {
    const [appId, buildId] = [newUuid<AppId>(), newUuid<BuildId>()];
    const builder = await startBuildProcess(appId, buildId);
    // A process that hangs cannot end its builds; the next one does.
    builder.kill('SIGSTOP');
    const again = buildSpec(sourceOf({ Procfile: 'web: ./run' }), { appId, buildId, cacheState: 'Warm' });
    expect((await buildToEnd(fixture.builds, again)).outcome).toMatchObject({ status: 'succeeded' });
    expect(await findProcesses(buildId)).toEqual([]);
    builder.kill('SIGKILL');
  });
});
