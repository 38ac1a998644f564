import { homedir } from 'node:os';
import { type AppSelection, type Context, defaultRemote } from '#cli/context/context.ts';
import { parseSshAddress, probeEnvironment, sshCommandOf, sshVerdict } from '#cli/doctor/ssh-probe.ts';
import { toCliError } from '#cli/errors/api-failure.ts';
import { findPublicKey, fingerprintsOf } from '#cli/git/ssh-key.ts';
import { listKeys } from '#cli/queries/list-keys.ts';
import { readApp } from '#cli/queries/read-app.ts';
import { runTool } from '#cli/terminal/run-tool.ts';
import { answerOf } from '#shared/api-client/client.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';

/** The result of a check. */
export interface Finding {
  readonly check: string;
  readonly ok: boolean;
  readonly detail: string;
  /** The command, or the step, that fixes the problem. */
  readonly fix?: string;
}

/** Runs all checks in the order of their dependencies. Checks whose dependency failed are left out. */
export async function* examine(context: Context, flags: AppSelection): AsyncGenerator<Finding> {
  yield { check: 'node', ok: true, detail: process.versions.node };
  const git = await checkTool('git', ['--version'], 'apt-get install git');
  yield git;
  const ssh = await checkTool('ssh', ['-V'], 'apt-get install openssh-client');
  yield ssh;
  const platform = await checkPlatform(context);
  yield platform;
  if (!platform.ok) return;
  const login = await checkLogin(context);
  yield login;
  if (!login.ok) return;
  yield await checkKey(context);
  if (!git.ok) return;
  const { finding, pushUrl } = await checkRemote(context, flags);
  if (finding !== undefined) yield finding;
  if (ssh.ok && pushUrl !== undefined) yield await checkSshLogin(context, pushUrl);
}

async function checkTool(check: string, args: readonly string[], fix: string): Promise<Finding> {
  const result = await runTool(check, args);
  if (result === undefined) return { check, ok: false, detail: 'is not installed', fix };
  return { check, ok: true, detail: (result.stdout + result.stderr).trim().split('\n')[0] ?? '' };
}

async function checkPlatform(context: Context): Promise<Finding> {
  return attempt('platform', async () => {
    const { data } = await answerOf((await context.anonymousApi()).GET('/v1/healthz'));
    const builds = data.builds === 'refused' ? ', but refuses builds: its disk is almost full' : '';
    return `${await context.host()} answers${builds}`;
  });
}

async function checkLogin(context: Context): Promise<Finding> {
  return attempt('login', async () => {
    const { data } = await answerOf((await context.api()).GET('/v1/user'));
    return `${data.email}, ${data.role} of ${data.tenant.name}`;
  });
}

/** Compares registered keys with those that ssh offers: files in ~/.ssh with the usual names, and keys of the agent. */
async function checkKey(context: Context): Promise<Finding> {
  const registered = await listKeys(await context.api());
  const file = await findPublicKey(context.env('HOME') ?? homedir());
  const agent = await runTool('ssh-add', ['-L']);
  const mine = [...(file === undefined ? [] : [file.fingerprint]), ...fingerprintsOf(agent?.code === 0 ? agent.stdout : '')];
  const match = registered.find((key) => mine.includes(key.fingerprint));
  if (match !== undefined) return { check: 'key', ok: true, detail: `${match.fingerprint} is registered` };
  const detail = mine.length === 0 ? 'you have no SSH key' : 'none of your SSH keys is registered';
  return { check: 'key', ok: false, detail, fix: 'paas keys:add' };
}

async function checkRemote(context: Context, flags: AppSelection): Promise<{ finding?: Finding; pushUrl?: string }> {
  const check = 'remote';
  const remote = flags.remote ?? defaultRemote;
  try {
    const name = await context.findAppName(flags);
    if (name === undefined)
      return {
        finding: {
          check,
          ok: false,
          detail: `there is no git remote "${remote}" here`,
          fix: 'paas create, or paas git:remote -a NAME',
        },
      };
    const app = await readApp(context, name);
    const url = await context.git.read(remote);
    const pushUrl = app.push_url;
    if (url === undefined && !(await context.git.inRepository())) return { pushUrl };
    if (url === pushUrl) return { finding: { check, ok: true, detail: `"${remote}" is ${app.name}` }, pushUrl };
    const detail =
      url === undefined
        ? `there is no git remote "${remote}" here`
        : `"${remote}" points to ${url}, but the app is at ${pushUrl}`;
    return { finding: { check, ok: false, detail, fix: `paas git:remote -a ${app.name} -r ${remote}` }, pushUrl };
  } catch (error) {
    return { finding: failed(check, error) };
  }
}

/** By git, which knows best how it is told to run ssh. */
async function checkSshLogin(context: Context, pushUrl: string): Promise<Finding> {
  const address = parseSshAddress(pushUrl);
  const check = 'git push';
  if (address === undefined)
    return { check, ok: false, detail: `${pushUrl} is no address for ssh`, fix: 'ask the operator of the platform' };
  const configured = await runTool('git', ['config', '--get', 'core.sshCommand']);
  const sshCommand = configured?.code === 0 ? configured.stdout.trim() : undefined;
  const env = context.terminal.env;
  const result = await runTool('git', ['ls-remote', '--', pushUrl], probeEnvironment(env, sshCommand));
  const ended = result ?? { code: null, stderr: 'git is not installed' };
  return { check, ...sshVerdict(address, ended, sshCommandOf(env, sshCommand)) };
}

async function attempt(check: string, look: () => Promise<string>): Promise<Finding> {
  try {
    return { check, ok: true, detail: await look() };
  } catch (error) {
    return failed(check, error);
  }
}

function failed(check: string, error: unknown): Finding {
  const failure = toCliError(error);
  if (failure === undefined) throw error;
  return omitUndefined({ check, ok: false, detail: failure.message, fix: failure.hint });
}
