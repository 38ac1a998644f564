import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { visit } from '#test/support/platform/user.ts';
import { byClient, byOperator, type Claim, type Probe } from '../probe.ts';
import { untilBack } from '../until-back.ts';

/** MiB. An app may have 512; what is taken beyond is not counted by anybody. */
const wanted = 900;
const tolerated = 640;

/** An attempt that may end the app that makes it; then it got nothing that lasts. */
function thatMayEndIt(name: string, args: unknown, orElse: Claim) {
  return byClient(async (attacker) => {
    const claim = await attacker.attempt({ name, args }).catch(() => orElse);
    await untilBack(attacker);
    return claim;
  });
}

function memoryProbe(kind: string, quick = false): Probe {
  return {
    name: `takes no more memory than its share: ${kind}`,
    family: 'resources',
    gain: 'the memory of the machine: the kernel ends others',
    ...(quick ? { quick } : {}),
    attack: thatMayEndIt('takeMemory', { kind, mebibytes: wanted }, 0),
    judge: (claim) => (Number(claim) > tolerated ? `${String(claim)} MiB` : undefined),
    ...(kind === 'heap' ? { control: byOperator('takeMemory', { kind, mebibytes: wanted }) } : {}),
  };
}

export const resourceProbes: readonly Probe[] = [
  memoryProbe('heap'),
  memoryProbe('/dev/shm', true),
  memoryProbe('/tmp'),
  memoryProbe('/app'),
  memoryProbe('memfd'),
  memoryProbe('shared segments'),
  memoryProbe('files of no size'),
  memoryProbe('connections to itself'),
  {
    name: 'slows no other app down by using all processors',
    family: 'resources',
    gain: "others' processor time",
    attack: byClient(async (attacker) => {
      const burning = attacker.attempt({ name: 'burnProcessors', args: { seconds: 6, processes: 16 } }).catch(() => undefined);
      const times: number[] = [];
      for (let i = 0; i < 40; i++) {
        const begun = performance.now();
        await visit(attacker.platform, 'ada');
        times.push(performance.now() - begun);
        await sleep(100);
      }
      await burning;
      await untilBack(attacker);
      return times.sort((one, other) => one - other)[35];
    }),
    judge: (claim) => (Number(claim) < 1000 ? undefined : `a visitor of another app waits ${Math.round(Number(claim))} ms`),
  },
  {
    name: "opens no more flows than its share of the host's table",
    family: 'resources',
    gain: 'the table of connections of the host: nobody else connects, not even by SSH',
    quick: true,
    attack: byClient(async (attacker) => {
      const hosts = Array.from({ length: 200 }, (_, index) => `198.51.100.${index + 1}`);
      const before = await countFlows();
      await attacker.attempt({ name: 'openFlows', args: { hosts, count: 30_000 } });
      return (await countFlows()) - before;
    }),
    judge: (claim) => (Number(claim) > 10_000 ? `${String(claim)} flows` : undefined),
  },
];

/** Entries of the host's table; apps have tables of their own besides. */
async function countFlows(): Promise<number> {
  return Number(await readFile('/proc/sys/net/netfilter/nf_conntrack_count', 'utf8'));
}
