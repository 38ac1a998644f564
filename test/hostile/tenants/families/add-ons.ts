import type { Attacker } from '../attacked-platform.ts';
import { byClient, nothingReached, type Probe } from '../probe.ts';

const types = ['kvstore', 'database'] as const;

interface Credentials {
  readonly uri: string;
}

/** Where the add-ons of the victim listen on the host. Created with the first call. */
async function addonsOfVictim({ victim }: Attacker): Promise<[host: string, port: number][]> {
  const ports: number[] = [];
  for (const type of types) {
    const path = `/v1/apps/ada/addons/${type}/credentials`;
    const existing = await victim.ask('GET', path);
    if (existing.status !== 200) await victim.ask('POST', '/v1/apps/ada/addons', { type, plan: 'free' });
    for (;;) {
      const answer = await victim.ask('GET', path);
      if (answer.status === 200) {
        ports.push(Number(new URL((await victim.api<Credentials>('GET', path)).uri).port));
        break;
      }
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
  return ports.map((port) => ['127.0.0.1', port]);
}

/** Ways to write the address of the host, as an attacker of a parser would. */
const hostAddresses = [
  '127.0.0.1',
  '2130706433',
  '0177.0.0.1',
  '0x7f.1',
  '127.1',
  '0',
  'localhost',
  'LOCALHOST.',
  '[::1]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[::127.0.0.1]',
  '[64:ff9b::7f00:1]',
  '[2002:7f00:1::]',
  '１２７.0.0.1',
];

/** Attacks on what the platform runs or asks in a tenant's name: its add-ons, and the sources of its builds. */
export const addonProbes: readonly Probe[] = [
  {
    name: "reaches no add-on of another's app",
    family: 'add-ons',
    gain: 'a place to guess the passwords of another app',
    attack: (attacker) =>
      byClient(async () => {
        const targets = await addonsOfVictim(attacker);
        const beside = targets.map(([, port]): [string, number] => ['10.213.0.1', port]);
        return attacker.attempt({ name: 'connectTo', args: { targets: [...targets, ...beside] } });
      }),
    judge: nothingReached,
    control: (attacker) =>
      byClient(async () => attacker.attemptOutside({ name: 'connectTo', args: { targets: await addonsOfVictim(attacker) } })),
  },
  {
    name: "gets no password of another's add-on, and changes none",
    family: 'add-ons',
    gain: 'the data of another app',
    attack: byClient(async ({ user }) => {
      const calls = types.flatMap((type) => [
        ['GET', `/v1/apps/ada/addons/${type}/credentials`],
        ['POST', `/v1/apps/ada/addons/${type}/rotate`],
        ['DELETE', `/v1/apps/ada/addons/${type}`],
      ]);
      const answers = await Promise.all(
        calls.map(async ([method = '', path = '']) => ({ call: `${method} ${path}`, ...(await user.ask(method, path)) })),
      );
      return answers.filter(({ status }) => status < 400 || status >= 500).map(({ call, status }) => `${call}: ${status}`);
    }),
    judge: nothingReached,
  },
  {
    name: 'has the platform fetch nothing from its own machine',
    family: 'add-ons',
    gain: 'answers of services that trust the machine, and a map of its ports',
    attack: byClient(async ({ user, app, canaries }) => {
      const [, port] = canaries.targets[0] ?? ['', 0];
      const taken: string[] = [];
      for (const host of [...hostAddresses, '169.254.169.254', '[fd00:ec2::254]']) {
        const archive = { source_url: `http://${host}:${port}/source.tar.gz` };
        const repository = { git_url: `https://${host}:${port}/repository.git` };
        const answers = await Promise.all([
          user.ask('POST', `/v1/apps/${app.name}/builds`, archive),
          user.ask('PATCH', `/v1/apps/${app.name}`, repository),
        ]);
        if (answers.some(({ status }) => status < 400 || status >= 500))
          taken.push(`${host}: ${answers.map(({ status }) => status).join(' ')}`);
      }
      return taken;
    }),
    judge: (claim, { canaries }) => nothingReached(claim) ?? nothingReached(canaries.takeVisits()),
  },
];
