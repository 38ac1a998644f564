import { readdir, readFile, stat } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { nodeApp } from '#test/support/builds/sample-apps.ts';
import { type RunningPlatform, removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { createUser, type User, type WorkingCopy } from '#test/support/platform/user.ts';
import { type RunResult, runChecked } from '#test/support/run-program.ts';
import { type Canaries, openCanaries } from './canaries.ts';
import { type Neighbour, openNeighbour } from './neighbour.ts';
import type { Attempt, Claim } from './probe.ts';
import { untilBack } from './until-back.ts';

/** An attacker on a platform that has a victim too, and what the operator has beside it. */
export interface Attacker {
  readonly platform: RunningPlatform;
  readonly canaries: Canaries;
  readonly neighbour: Neighbour;
  readonly user: User;
  /** The attacker's app, which runs attempts. Its name is also its host name. */
  readonly app: AttackerApp;
  readonly victim: User;
  readonly victimApp: AttackerApp;
  /** Calls code in the attacker's running app. */
  attempt(attempt: Attempt): Promise<Claim>;
  /** Calls the same code as root, outside of any sandbox. */
  attemptOutside(attempt: Attempt): Promise<Claim>;
  /** What the code in the attacker's build claimed. */
  claimOfBuild(attempt: Attempt): Claim;
  /** Pushes an app of the attacker; a new one unless there is one of that name. '' is the app that runs attempts. */
  push(part: string, files: Record<string, string>, ...options: string[]): Promise<RunResult>;
  /** The name of an app that was pushed. */
  nameOf(part: string): string;
  /** Uid that the code of an app runs as. */
  uidOf(appId: string): Promise<number>;
  /** Processes of a user on the whole machine. */
  countProcesses(uid: number): Promise<number>;
}

export interface AttackerApp {
  readonly id: string;
  readonly name: string;
}

const attacks = new URL('./attacks/', import.meta.url);

/** The files of the attacker's app. Its build makes the attempts. */
export async function attackerFiles(inBuild: readonly Attempt[]): Promise<Record<string, string>> {
  const names = (await readdir(attacks)).filter((name) => name.endsWith('.ts'));
  const sources = await Promise.all(names.map((name) => readFile(new URL(name, attacks), 'utf8')));
  const scripts = { start: 'exec node --no-warnings server.ts', build: 'node --no-warnings attempt.ts "$(cat in-build.json)"' };
  return {
    'package.json': JSON.stringify({
      name: 'attacker',
      version: '1.0.0',
      private: true,
      type: 'module',
      engines: { node: '>=26' },
      scripts,
    }),
    Procfile: 'web: node --no-warnings server.ts\n',
    'in-build.json': JSON.stringify(inBuild),
    ...Object.fromEntries(names.map((name, index) => [name, sources[index] ?? ''])),
  };
}

/** A platform with what all attackers aim at. */
export interface AttackedPlatform {
  readonly platform: RunningPlatform;
  /** Signs an attacker up, who deploys an app that makes these attempts in its build. The name is that of the app as well. */
  addAttacker(name: string, inBuild: readonly Attempt[]): Promise<Attacker>;
  close(): Promise<void>;
}

export async function openAttackedPlatform(env: Record<string, string> = {}): Promise<AttackedPlatform> {
  // Quotas would end most attacks early. What holds without them holds with them.
  const quotas = 'apps=100,instances=200,memory_mib=204800,builds_per_hour=1000';
  const platform = await startPlatform({ env: { PAAS_CANARY_STEP_SECONDS: '0', PAAS_QUOTAS: quotas, ...env } });
  const [canaries, neighbour] = await Promise.all([openCanaries(), openNeighbour()]);
  const victim = await createUser(platform, 'ada@example.com');
  const victimApp = await victim.createApp('ada');
  await expectDeployed((await victim.createWorkingCopy(victimApp.push_url, nodeApp('here'))).push());
  const users: User[] = [];
  return {
    platform,
    async addAttacker(name, inBuild) {
      const user = await createUser(platform, `${name}@example.com`);
      users.push(user);
      const push = pushAs(user);
      const { output } = await expectDeployed(push(name, await attackerFiles(inBuild)));
      const claims = readClaims(output);
      const app = await user.api<AttackerApp>('GET', `/v1/apps/${name}`);
      return {
        platform,
        canaries,
        neighbour,
        victim,
        victimApp,
        user,
        app,
        push: (part, files, ...options) => push(part === '' ? name : `${name}-${part}`, files, options),
        nameOf: (part) => `${name}-${part}`,
        async attempt(attempt) {
          await untilBack({ platform, app });
          return askApp(platform, name, attempt);
        },
        attemptOutside,
        claimOfBuild(attempt) {
          if (!claims.has(keyOf(attempt))) throw new Error(`The build did not get to ${attempt.name}:\n${output}`);
          return claims.get(keyOf(attempt));
        },
        uidOf: (appId) => findUid(platform.dataDir, appId),
        countProcesses,
      };
    },
    async close() {
      await Promise.all([...users.map((each) => each.remove()), victim.remove(), canaries.close(), neighbour.close()]);
      await removePlatform(platform);
    },
  };
}

async function expectDeployed(pushing: Promise<RunResult>): Promise<RunResult> {
  const pushed = await pushing;
  if (pushed.code !== 0) throw new Error(`An app was not deployed:\n${pushed.output}`);
  return pushed;
}

/** Pushes to apps by their names, which are created with the first push. */
function pushAs(user: User): (name: string, files: Record<string, string>, options?: readonly string[]) => Promise<RunResult> {
  const copies = new Map<string, WorkingCopy>();
  return async (name, files, options = []) => {
    const known = copies.get(name);
    if (known !== undefined) await known.commit(files);
    const copy = known ?? (await user.createWorkingCopy((await user.createApp(name)).push_url, files));
    copies.set(name, copy);
    return copy.push(...options, 'paas', 'main');
  };
}

async function attemptOutside(attempt: Attempt): Promise<Claim> {
  const argv = ['--no-warnings', new URL('attempt.ts', attacks).pathname, JSON.stringify([attempt])];
  return readClaims((await runChecked(process.execPath, argv)).stdout).get(keyOf(attempt));
}

async function findUid(dataDir: string, appId: string): Promise<number> {
  for (const uid of await readdir(join(dataDir, 'uids')))
    if ((await readFile(join(dataDir, 'uids', uid), 'utf8')) === appId) return Number(uid);
  throw new Error(`There is no uid for ${appId}.`);
}

async function countProcesses(uid: number): Promise<number> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const owners = await Promise.all(
    pids.map((pid) =>
      stat(`/proc/${pid}`).then(
        (facts) => facts.uid,
        () => -1,
      ),
    ),
  );
  return owners.filter((owner) => owner === uid).length;
}

/** @throws Error when the app does not answer with a claim */
async function askApp(platform: RunningPlatform, host: string, attempt: Attempt): Promise<Claim> {
  const asked = request({
    host: '127.0.0.1',
    port: platform.httpPort,
    method: 'POST',
    agent: false,
    headers: { host: `${host}.apps.localhost` },
  });
  const body = await new Promise<string>((resolve, reject) => {
    asked.on('response', (response) => void text(response).then(resolve, reject)).on('error', reject);
    asked.end(JSON.stringify(attempt));
  });
  try {
    return (JSON.parse(body) as { claim: Claim }).claim;
  } catch {
    throw new Error(`The attacker's app answered ${attempt.name} with ${body.slice(0, 200)}`);
  }
}

function keyOf({ name, args }: Attempt): string {
  return JSON.stringify([name, args]);
}

/** Claims in the output of `attempt.ts`, or of a build that ran it. */
function readClaims(output: string): Map<string, Claim> {
  const claims = new Map<string, Claim>();
  let gathered = '';
  for (const [, kind, part = ''] of output.matchAll(/CLAIM (part|last) ([A-Za-z0-9+/=]+)/g)) {
    gathered += part;
    if (kind === 'part') continue;
    const claimed = JSON.parse(Buffer.from(gathered, 'base64').toString()) as Attempt & { claim: Claim };
    claims.set(keyOf(claimed), claimed.claim);
    gathered = '';
  }
  return claims;
}
