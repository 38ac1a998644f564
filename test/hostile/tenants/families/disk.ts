import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Attacker } from '../attacked-platform.ts';
import { byClient, type Probe } from '../probe.ts';
import { untilBack } from '../until-back.ts';

const run = promisify(execFile);

/** MiB on the disk that the data directory uses. Files that are deleted while it is measured do not matter. */
async function usedBy({ platform }: Attacker, ...below: string[]): Promise<number> {
  const { stdout } = await run('du', ['--summarize', '--block-size=1M', join(platform.dataDir, ...below)]).catch(
    (error: { stdout: string }) => error,
  );
  return Number.parseInt(stdout, 10);
}

/**
 * The most that the data directory grew by while something ran, in MiB.
 * @param below a directory in it, where other attackers may use the rest meanwhile
 */
async function growthDuring(attacker: Attacker, begin: () => Promise<unknown>, ...below: string[]): Promise<number> {
  const before = await usedBy(attacker, ...below);
  let most = before;
  let over = false;
  const done = begin().finally(() => {
    over = true;
  });
  // It is awaited below.
  done.catch(() => undefined);
  while (!over) most = Math.max(most, await usedBy(attacker, ...below));
  await done;
  return Math.max(most, await usedBy(attacker, ...below)) - before;
}

function grewBy(most: number): (claim: unknown) => string | undefined {
  return (claim) => (Number(claim) > most ? `${String(claim)} MiB` : undefined);
}

export const diskProbes: readonly Probe[] = [
  {
    name: 'reserves no space of the disk in any place that it can write to',
    family: 'disk',
    gain: 'the disk of everybody, in a moment',
    quick: true,
    attack: byClient((attacker) =>
      // The kernel may end it for the memory behind /dev/shm.
      growthDuring(attacker, () =>
        attacker.attempt({ name: 'reserveDisk', args: { mebibytes: 2048 } }).catch(() => untilBack(attacker)),
      ),
    ),
    judge: grewBy(100),
    control: byClient((attacker) =>
      growthDuring(attacker, () =>
        attacker
          .attemptOutside({ name: 'reserveDisk', args: { mebibytes: 256, directories: [attacker.platform.dataDir] } })
          .then(async () => usedBy(attacker))
          .then(() => run('rm', [join(attacker.platform.dataDir, '.reserved')])),
      ),
    ),
  },
  {
    name: 'writes to no directory but its own',
    family: 'disk',
    gain: 'disk space that nobody counts',
    attack: byClient((attacker) => attacker.attempt({ name: 'findWritable', args: {} })),
    judge: (claim) => {
      const own = /^\/(app|tmp|dev\/shm|dev)(\/|$)/;
      return (claim as string[]).filter((path) => !own.test(path)).join(', ') || undefined;
    },
  },
  {
    name: 'keeps no more output than a log may have',
    family: 'disk',
    gain: 'the disk of everybody',
    attack: byClient((attacker) =>
      growthDuring(
        attacker,
        () => attacker.attempt({ name: 'floodOutput', args: { mebibytes: 400, seconds: 60 } }),
        ...['workloads', attacker.app.id],
      ),
    ),
    judge: grewBy(80),
  },
];
