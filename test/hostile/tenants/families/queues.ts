import { setTimeout as sleep } from 'node:timers/promises';
import { nodeApp } from '#test/support/builds/sample-apps.ts';
import type { Attacker } from '../attacked-platform.ts';
import { byClient, type Claim, type Probe } from '../probe.ts';

/** The app of Node with a script that runs in the build. */
function withBuild(build: string, files: Record<string, string> = {}): Record<string, string> {
  const scripts = { start: 'node server.js', build };
  return { ...nodeApp('busy'), 'package.json': JSON.stringify({ name: 'busy', version: '1.0.0', scripts }), ...files };
}

/** Seconds until an app of the victim was built and deployed while something keeps the attacker's jobs busy. */
async function victimsDeploy(attacker: Attacker, name: string): Promise<number> {
  const { push_url } = await attacker.victim.createApp(name);
  const copy = await attacker.victim.createWorkingCopy(push_url, nodeApp('on time'));
  const begun = performance.now();
  const { code } = await copy.push();
  return code === 0 ? (performance.now() - begun) / 1000 : Number.POSITIVE_INFINITY;
}

/** Pushes of several apps that nobody waits for. */
async function pushDetached(attacker: Attacker, part: string, count: number, files: Record<string, string>): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, index) => attacker.push(`${part}-${index}`, files, '-o', 'detach')));
}

function tookLonger(claim: Claim): string | undefined {
  return Number(claim) < 25 ? undefined : `the deploy of another took ${Math.round(Number(claim))} s`;
}

export const queueProbes: readonly Probe[] = [
  {
    name: "delays nobody's deploy by builds that hang",
    family: 'queues',
    gain: 'all deploys of everybody stop',
    attack: byClient(async (attacker) => {
      await pushDetached(attacker, 'hangs', 8, withBuild('sleep 40'));
      return victimsDeploy(attacker, `ada-${attacker.nameOf('builds')}`);
    }),
    judge: tookLonger,
  },
  {
    name: "delays nobody's deploy by release commands that sleep",
    family: 'queues',
    gain: 'all deploys of everybody stop',
    attack: byClient(async (attacker) => {
      await pushDetached(attacker, 'sleeps', 8, { ...nodeApp('busy'), Procfile: 'release: sleep 60\nweb: node server.js\n' });
      await sleep(8000);
      return victimsDeploy(attacker, `ada-${attacker.nameOf('sleeps')}`);
    }),
    judge: tookLonger,
  },
  {
    name: 'stops nobody by texts that take long to read',
    family: 'queues',
    gain: 'the whole platform stands still for an hour',
    quick: true,
    attack: byClient(async (attacker) => {
      const Procfile = `web:${' '.repeat(150_000)}x\u2028y\n`;
      const pushing = attacker.push('text', { ...nodeApp('busy'), Procfile, 'requirements.txt': `${'\n'.repeat(150_000)}x` });
      let longest = 0;
      let over = false;
      void pushing.finally(() => {
        over = true;
      });
      while (!over) {
        const begun = performance.now();
        await attacker.victim.ask('GET', '/v1/apps/ada');
        longest = Math.max(longest, performance.now() - begun);
        await sleep(20);
      }
      return longest;
    }),
    judge: (claim) => (Number(claim) < 5000 ? undefined : `an answer of the API took ${Math.round(Number(claim))} ms`),
  },
  {
    name: 'declares no more process types than can be handled',
    family: 'queues',
    gain: 'rows, instances and answers without an end',
    attack: byClient(async (attacker) => {
      const Procfile = Array.from({ length: 20_000 }, (_, index) => `t${index}: sleep 1\n`).join('');
      return (await attacker.push('types', { ...nodeApp('busy'), Procfile })).output;
    }),
    judge: (claim) => (/more than \d+ process types/.test(String(claim)) ? undefined : String(claim).slice(-200)),
  },
  {
    name: 'floods no log of a build',
    family: 'queues',
    gain: 'rows of PostgreSQL without an end, and the time of all who read them',
    attack: byClient(async (attacker) => {
      const begun = performance.now();
      const { output } = await attacker.push(
        'flood',
        withBuild(`node -e "const l='x'.repeat(8000);for(let i=0;i<12000;i++)console.log(l)"`),
      );
      return { bytes: output.length, seconds: (performance.now() - begun) / 1000 };
    }),
    judge: (claim) => {
      const { bytes } = claim as { bytes: number };
      return bytes > 24 * 1024 * 1024 ? `${bytes} bytes` : undefined;
    },
  },
];
