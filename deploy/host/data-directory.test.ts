import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { lockDataDirectory } from '#deploy/host/data-directory.ts';
import { StartError } from '#deploy/host/start-error.ts';
import { readProcessIdentity } from '#shared/platform/local/processes/process-identity.ts';

/** As a control plane that was killed leaves it. */
const staleRecord = JSON.stringify({ pid: 4_194_303, startTicks: 1, bootId: '00000000-0000-0000-0000-000000000000' });

let parent: string;
let starters: ChildProcess[];
beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'paas-data-directory-'));
  starters = [];
});
afterEach(async () => {
  for (const starter of starters.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)) {
    starter.kill('SIGKILL');
    await once(starter, 'exit');
  }
  await rm(parent, { recursive: true });
});

function startStarter(): ChildProcess {
  const starter = fork(new URL('testing/lock-contender.ts', import.meta.url), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  starters.push(starter);
  return starter;
}

/** 'locked', or the message of the refusal. */
async function askToLock(starter: ChildProcess, dataDir: string): Promise<string> {
  const answer = once(starter, 'message');
  starter.send(dataDir);
  return String((await answer)[0]);
}

describe('the lock of a data directory', () => {
  it('lets exactly one in of the processes that find the lock of a killed one at the same time', async () => {
    const contenders = [startStarter(), startStarter(), startStarter()];
    for (let round = 0; round < 200; round += 1) {
      const dataDir = await mkdtemp(join(parent, 'round-'));
      await writeFile(join(dataDir, 'lock'), staleRecord);
      const answers = await Promise.all(contenders.map((starter) => askToLock(starter, dataDir)));
      expect(answers.filter((answer) => answer === 'locked')).toHaveLength(1);
      for (const answer of answers) expect(answer).toMatch(/^locked$|^Another paas .*runs on/);
    }
  });

  it('refuses a second one, names the first, and is free as soon as the first is killed', async () => {
    const first = startStarter();
    expect(await askToLock(first, parent)).toBe('locked');
    await expect(lockDataDirectory(parent)).rejects.toThrow(
      new StartError(`Another paas (pid ${first.pid}) runs on ${parent}. Stop it, or set PAAS_DATA_DIR to another directory.`),
    );
    first.kill('SIGKILL');
    await once(first, 'exit');
    await (await lockDataDirectory(parent)).release();
  });

  it('refuses a second one in the same process, and leaves the first one its lock', async () => {
    const lock = await lockDataDirectory(parent);
    await expect(lockDataDirectory(parent)).rejects.toThrow(StartError);
    expect(await askToLock(startStarter(), parent)).toContain(`pid ${process.pid}`);
    await lock.release();
    expect(await askToLock(startStarter(), parent)).toBe('locked');
  });

  it('refuses to start beside a control plane of a version that only wrote its pid down', async () => {
    const other = startStarter();
    await writeFile(join(parent, 'lock'), JSON.stringify(await readProcessIdentity(other.pid ?? 0)));
    await expect(lockDataDirectory(parent)).rejects.toThrow(`pid ${other.pid}`);
  });

  it('cannot be taken by another user of the machine, and leaves no record behind when it is released', async () => {
    const lock = await lockDataDirectory(parent);
    for (const name of await readdir(parent)) expect((await stat(join(parent, name))).mode & 0o777).toBe(0o600);
    await lock.release();
    expect(await readdir(parent)).not.toContain('lock');
  });
});
