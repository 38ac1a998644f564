import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { visit } from '#test/support/platform/user.ts';
import { type Attacker, attackerFiles } from '../attacked-platform.ts';
import { byClient, byOperator, type Claim, inApp, inBuild, nothingReached, type Probe } from '../probe.ts';

/** Processes that a tenant must not reach: the platform's, the operator's, and the first ones of the machine. */
const foreignPids = ({ platform, canaries }: Attacker): number[] => [platform.pid, canaries.pid, process.pid];

/** Gained when the canary's process or the platform has ended, or the claim names a process. */
function processReached(claim: Claim, { canaries, platform }: Attacker): string | undefined {
  if (!canaries.isProcessAlive()) return "the operator's process was ended";
  if (platform.output().includes('is stopping')) return 'the platform was stopped';
  return nothingReached(claim);
}

/** How many processes of the user are left after some time to end. */
async function leftOf(attacker: Attacker, uid: number, patienceSeconds: number): Promise<number> {
  const until = Date.now() + patienceSeconds * 1000;
  for (;;) {
    const left = await attacker.countProcesses(uid);
    if (left === 0 || Date.now() > until) return left;
    await sleep(100);
  }
}

export const processProbes: readonly Probe[] = [
  {
    name: 'signals no process of others',
    family: 'processes',
    gain: 'to end the platform and other apps',
    quick: true,
    attack: (attacker) => inApp('signalProcesses', { pids: [1, ...foreignPids(attacker)], signal: 0 }),
    judge: processReached,
    control: ({ canaries }) => byOperator('signalProcesses', { pids: [canaries.pid], signal: 0 }),
  },
  {
    name: 'ends only its own build by signals to everything',
    family: 'processes',
    gain: 'to end the platform and other builds',
    quick: true,
    attack: (attacker) =>
      byClient(async () => {
        const pids = foreignPids(attacker);
        return (await attacker.push('killer', await attackerFiles([{ name: 'signalEverything', args: { pids } }]))).output;
      }),
    judge: async (claim, attacker) => {
      if (!/rejected|failed/.test(String(claim))) return 'its build was not ended';
      return (
        processReached([], attacker) ??
        ((await visit(attacker.platform, 'ada')).status === 200 ? undefined : 'the app of another was ended')
      );
    },
  },
  {
    name: 'traces no process of others',
    family: 'processes',
    gain: "keys and passwords in others' memory",
    quick: true,
    attack: (attacker) => inApp('traceProcesses', { pids: [1, ...foreignPids(attacker)] }),
    judge: processReached,
    control: ({ canaries }) => byOperator('traceProcesses', { pids: [canaries.pid] }),
  },
  {
    name: 'sees no process of others',
    family: 'processes',
    gain: 'command lines and environments of the platform and of others',
    quick: true,
    attack: inApp('listProcesses'),
    judge: foreignProcessSeen,
    control: byOperator('listProcesses'),
  },
  {
    name: 'sees no process of others in a build',
    family: 'processes',
    gain: 'command lines and environments of the platform and of others',
    attack: inBuild('listProcesses'),
    judge: foreignProcessSeen,
  },
  {
    name: 'gains no rights by programs of the host',
    family: 'processes',
    gain: 'root in its sandbox, a step to the host',
    quick: true,
    attack: inApp('gainRights'),
    judge: nothingReached,
    control: byOperator('gainRights'),
  },
  {
    name: 'gains no rights in a build',
    family: 'processes',
    gain: 'root in its sandbox, a step to the host',
    attack: inBuild('gainRights'),
    judge: nothingReached,
  },
  {
    name: 'leaves no process running when its build has ended',
    family: 'processes',
    gain: 'processor time and memory that nobody counts',
    quick: true,
    attack: (attacker) =>
      byClient(async () => {
        const files = {
          ...(await attackerFiles([{ name: 'leaveDaemons', args: { count: 5, title: 'left' } }])),
          Procfile: 'worker: sleep 1\n',
        };
        await attacker.push('daemons', files);
        const { id } = await attacker.user.api<{ id: string }>('GET', `/v1/apps/${attacker.nameOf('daemons')}`);
        return attacker.uidOf(id);
      }),
    judge: (claim, attacker) => processesLeft(claim, attacker),
    control: (attacker) => byClient(() => processOf(attacker)),
  },
  {
    name: 'leaves no process running when its app has stopped',
    family: 'processes',
    gain: 'processor time and memory that nobody counts, an app that cannot be stopped',
    attack: (attacker) =>
      byClient(async () => {
        const daemons = JSON.stringify([{ name: 'leaveDaemons', args: { count: 5, title: 'left' } }]);
        const Procfile = `worker: trap '' TERM; node --no-warnings attempt.ts '${daemons}'; while :; do sleep 1; done\n`;
        await attacker.push('stubborn', { ...(await attackerFiles([])), Procfile });
        const { id } = await attacker.user.api<{ id: string }>('GET', `/v1/apps/${attacker.nameOf('stubborn')}`);
        await attacker.user.api('PATCH', `/v1/apps/${attacker.nameOf('stubborn')}/processes/worker`, { quantity: 1 });
        const uid = await attacker.uidOf(id);
        for (let i = 0; i < 100 && (await attacker.countProcesses(uid)) < 8; i++) await sleep(100);
        await attacker.user.api('PATCH', `/v1/apps/${attacker.nameOf('stubborn')}/processes/worker`, { quantity: 0 });
        return uid;
      }),
    // Ten seconds to end by itself, and some for a busy machine.
    judge: (claim, attacker) => processesLeft(claim, attacker, 40),
  },
  {
    name: 'starts no more processes than its share',
    family: 'processes',
    gain: "the machine's process ids: nobody else starts a process",
    quick: true,
    attack: (attacker) =>
      byClient(async () => {
        let most = 0;
        const uid = await attacker.uidOf(attacker.app.id);
        const bomb = attacker.attempt({ name: 'forkBomb', args: { wanted: 1500 } }).catch(() => undefined);
        let over = false;
        void bomb.then(() => {
          over = true;
        });
        while (!over) {
          most = Math.max(most, await attacker.countProcesses(uid));
          await sleep(50);
        }
        return most;
      }),
    judge: (claim) => (Number(claim) > 300 ? `${String(claim)} processes` : undefined),
  },
  {
    name: 'misleads nobody by the names of its processes',
    family: 'processes',
    gain: 'processes that are taken for others, or are not stopped',
    attack: inApp('misleadByName', { name: 'x) Z 1 1 (\n1' }),
    judge: async (_, attacker) => {
      const [web] = await attacker.user.api<{ instances: { state: string }[] }[]>(
        'GET',
        `/v1/apps/${attacker.app.name}/processes`,
      );
      return web?.instances[0]?.state === 'up' ? undefined : `the instance is ${JSON.stringify(web?.instances)}`;
    },
  },
];

function foreignProcessSeen(claim: Claim, { canaries, platform }: Attacker): string | undefined {
  const text = JSON.stringify(claim);
  if (!text.includes('attempt.ts') && !text.includes('server.ts')) return `it does not even see itself: ${text.slice(0, 200)}`;
  return [canaries.word, platform.dataDir, 'single-machine', 'postgres'].find((word) => text.includes(word));
}

async function processesLeft(claim: Claim, attacker: Attacker, patienceSeconds = 5): Promise<string | undefined> {
  const left = await leftOf(attacker, Number(claim), patienceSeconds);
  return left === 0 ? undefined : `${left} processes`;
}

/** A process that the operator starts for a user who has none. */
async function processOf(attacker: Attacker): Promise<number> {
  const uid = 0x7fff_0000 + (process.pid % 60_000);
  const child = spawn('/bin/sleep', ['40'], { uid, stdio: 'ignore' });
  child.unref();
  while ((await attacker.countProcesses(uid)) === 0) await sleep(20);
  return uid;
}
