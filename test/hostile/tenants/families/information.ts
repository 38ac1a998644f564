import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import type { Attacker } from '../attacked-platform.ts';
import { byClient, byOperator, type Claim, inApp, inBuild, listOf, nothingReached, type Probe } from '../probe.ts';

/** Words that only the platform, its operator and other tenants know. */
async function secretWords({ platform, canaries, victimApp, victim }: Attacker): Promise<string[]> {
  const key = await readFile(`${platform.dataDir}/master.key`, 'latin1');
  return [canaries.word, victimApp.id, victim.token, key.trim(), 'postgresql://'];
}

async function wordsSeen(claim: Claim, attacker: Attacker): Promise<string | undefined> {
  const text = JSON.stringify(claim);
  const seen = (await secretWords(attacker)).filter((word) => text.includes(JSON.stringify(word).slice(1, -1)));
  return seen.length === 0 ? undefined : seen.map((word) => word.slice(0, 12)).join(', ');
}

/** Milliseconds by which answers to the first path take longer than those to the second. */
async function timeBetween(attacker: Attacker, paths: readonly [string, string], rounds: number): Promise<number> {
  const taken: [number[], number[]] = [[], []];
  for (let i = 0; i < rounds; i++) {
    for (const index of [0, 1] as const) {
      const begun = performance.now();
      await attacker.user.ask('GET', paths[index]);
      taken[index].push(performance.now() - begun);
    }
  }
  // The quick quarter: others use the machine too.
  const [theirs = 0, nobodys = 0] = taken.map((times) => times.sort((one, other) => one - other)[rounds >> 2]);
  return theirs - nobodys;
}

export const informationProbes: readonly Probe[] = [
  {
    name: 'learns nothing of others by its own processes',
    family: 'information',
    gain: 'keys, passwords and ids of others, left in an environment or a command line',
    quick: true,
    attack: inApp('readSelf'),
    judge: wordsSeen,
    control: ({ canaries }) => byOperator('readFiles', { paths: [`/proc/${canaries.pid}/environ`] }),
  },
  {
    name: 'learns nothing of others by the processes of its build',
    family: 'information',
    gain: 'keys, passwords and ids of others, left in an environment or a command line',
    attack: inBuild('readSelf'),
    judge: wordsSeen,
  },
  {
    name: "does not see the control plane's environment",
    family: 'information',
    gain: 'settings of the platform, passwords among them',
    attack: inApp('readSelf'),
    judge: (claim) =>
      nothingReached(
        [...String(claim).matchAll(/\bPAAS_(?:DATA_DIR|HTTP_PORT|METRICS_PORT|DATABASE_URL|WEBHOOK_SECRET)\b/g)].map(
          ([name]) => name,
        ),
      ),
    control: ({ platform }) => byClient(() => readFile(`/proc/${platform.pid}/environ`, 'latin1')),
  },
  {
    name: 'does not see the name of the machine',
    family: 'information',
    gain: 'whom it is a guest of',
    attack: inApp('readFiles', { paths: ['/proc/sys/kernel/hostname', '/etc/hostname', '/etc/machine-id'] }),
    judge: (claim) => {
      const found = claim as Record<string, string>;
      return (found['/proc/sys/kernel/hostname'] ?? '').trim() === 'app'
        ? nothingReached(Object.keys(found).slice(1))
        : JSON.stringify(found);
    },
    control: byClient(() => Promise.resolve({ '/proc/sys/kernel/hostname': hostname() })),
  },
  {
    name: "cannot tell another's app from one that does not exist",
    family: 'information',
    gain: 'which apps and customers there are',
    quick: true,
    attack: byClient(async (attacker) => {
      const paths = ['', '/builds', '/releases', '/config', '/logs', '/processes', '/addons', '/domains', '/metrics'];
      const different: string[] = [];
      for (const path of paths) {
        const [theirs, nobodys] = await Promise.all(
          [attacker.victimApp.id, '00000000-0000-4000-8000-000000000000'].map(async (id) =>
            JSON.stringify(await attacker.user.ask('GET', `/v1/apps/${id}${path}`))
              .replaceAll(id, 'ID')
              .replace(/"request_id":"[^"]*"/, '')
              .replace(/"ts":"[^"]*"/, ''),
          ),
        );
        if (theirs !== nobodys) different.push(path);
      }
      return different;
    }),
    judge: nothingReached,
  },
  {
    name: 'cannot tell by the time that an answer takes',
    family: 'information',
    gain: 'which apps and customers there are',
    attack: byClient((attacker) =>
      timeBetween(attacker, [`/v1/apps/${attacker.victimApp.id}`, '/v1/apps/00000000-0000-4000-8000-000000000000'], 60),
    ),
    // Below the noise of any network.
    judge: (claim) => (Math.abs(Number(claim)) < 25 ? undefined : `${String(claim)} ms of difference`),
  },
  {
    name: 'gets no stack, path or query in an error',
    family: 'information',
    gain: 'how the platform is made, and where',
    quick: true,
    attack: byClient(async (attacker) => {
      const own = attacker.app.name;
      const asked = [
        ['POST', '/v1/apps', { name: '\u0000' }],
        ['POST', '/v1/apps', { name: 'x'.repeat(100_000) }],
        ['GET', '/v1/apps/%00', undefined],
        ['GET', `/v1/apps/${own}/logs?since='%22`, undefined],
        ['GET', '/v1/apps?cursor=AAAA', undefined],
        ['PATCH', `/v1/apps/${own}/config`, { 'A\u0000B': '\ud800' }],
        ['PATCH', `/v1/apps/${own}/processes/__proto__`, { quantity: 1 }],
        ['POST', `/v1/apps/${own}/builds`, { commit: '../../..' }],
        ['GET', `/v1/apps/${own}/metrics?range=99999999999999999d`, undefined],
      ] as const;
      const answers = await Promise.all(asked.map(([method, path, body]) => attacker.user.ask(method, path, body)));
      return answers.map(({ status, body }) => `${status} ${JSON.stringify(body)}`);
    }),
    judge: (claim, { platform }) =>
      listOf(claim).find(
        (answer) =>
          answer.startsWith('5') ||
          answer.includes(platform.dataDir) ||
          /\bat .+:\d+:\d+|node_modules|select |insert |\/root|\.ts\b/i.test(answer),
      ),
    control: byClient(() => Promise.resolve([`400 ${new Error('x').stack ?? ''}`])),
  },
];
