import { type ChildProcess, spawn } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AppId, type BuildId, newUuid } from '#shared/ids.ts';
import { buildSpec, buildToEnd, sourceOf, watchToEnd } from '#shared/platform/testing/build-specs.ts';
import { endlessApp, markerOf } from '#test/support/builds/endless-app.ts';
import { openTestBuilds, type TestBuilds } from '#test/support/builds/test-builds.ts';

let ground: TestBuilds;
beforeAll(async () => {
  ground = await openTestBuilds();
});
afterAll(() => ground.stop());

/** Processes on this machine with the build's marker on their command line. */
async function findProcesses(buildId: BuildId): Promise<readonly string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
  return lines.filter((line) => line.startsWith('sleep\0') && line.includes(markerOf(buildId)));
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 20));
}

/** Starts a build in a process of its own; resolves when it is in the middle of it. */
async function startHost(appId: AppId, buildId: BuildId): Promise<ChildProcess> {
  const script = fileURLToPath(new URL('../support/builds/build-process.ts', import.meta.url));
  const host = spawn(process.execPath, [script, ground.dataDir, appId, buildId], { stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  host.stdout?.on('data', (chunk) => {
    said += String(chunk);
  });
  await until(async () => said.includes('started') && (await findProcesses(buildId)).length === 2);
  return host;
}

describe('a build', () => {
  it('that is cancelled leaves no process, not even one in a session of its own, and no directory', async () => {
    const spec = endlessApp();
    await ground.builds.startBuild(spec);
    await until(async () => (await findProcesses(spec.buildId)).length === 2);
    await ground.builds.cancelBuild(spec.buildId);
    expect((await watchToEnd(ground.builds, spec.buildId)).outcome).toEqual({ status: 'canceled' });
    expect(await findProcesses(spec.buildId)).toEqual([]);
    expect(await readdir(`${ground.dataDir}/builds`)).toEqual([]);
  });

  it('whose platform is killed dies with it, and can be run again under its id', async () => {
    const [appId, buildId] = [newUuid<AppId>(), newUuid<BuildId>()];
    const host = await startHost(appId, buildId);
    host.kill('SIGKILL');
    await until(async () => (await findProcesses(buildId)).length === 0);
    expect(await readdir(`${ground.dataDir}/builds`)).toEqual([buildId]);

    const again = buildSpec(sourceOf({ Procfile: 'web: ./run' }), { appId, buildId, cacheState: 'Warm' });
    expect((await buildToEnd(ground.builds, again)).outcome).toMatchObject({ status: 'succeeded' });
    expect(await readdir(`${ground.dataDir}/builds`)).toEqual([]);
  });

  it('that still runs elsewhere is ended before it is run again', async () => {
    const [appId, buildId] = [newUuid<AppId>(), newUuid<BuildId>()];
    const host = await startHost(appId, buildId);
    // A platform that hangs cannot end its builds; its successor does.
    host.kill('SIGSTOP');
    const again = buildSpec(sourceOf({ Procfile: 'web: ./run' }), { appId, buildId, cacheState: 'Warm' });
    expect((await buildToEnd(ground.builds, again)).outcome).toMatchObject({ status: 'succeeded' });
    expect(await findProcesses(buildId)).toEqual([]);
    host.kill('SIGKILL');
  });
});
