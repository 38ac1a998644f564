import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { RunningPlatform } from '#test/support/platform/running-platform.ts';
import { type RunOptions, type RunResult, run, runChecked } from '#test/support/run-program.ts';

/** What a person has: an account, a key, working copies, and nothing but HTTP, ssh and git. */
export interface User {
  readonly home: string;
  readonly token: string;
  /** One request of the REST API; `path` as '/v1/apps'. Rejects on a status of 400 or more with the answer's text. */
  api<Data>(method: string, path: string, body?: unknown): Promise<Data>;
  /** Status and parsed body, whatever they are. */
  ask(method: string, path: string, body?: unknown): Promise<{ status: number; body: unknown }>;
  createApp(name: string): Promise<AppAnswer>;
  /** A new working copy with these files committed, and the remote `paas`. */
  createWorkingCopy(pushUrl: string, files: Record<string, string>): Promise<WorkingCopy>;
  git(cwd: string, args: readonly string[], options?: RunOptions): Promise<RunResult>;
  remove(): Promise<void>;
}

export interface AppAnswer {
  id: string;
  name: string;
  push_url: string;
  subdomain: string;
}

export interface WorkingCopy {
  readonly directory: string;
  /** Writes files (an undefined one is deleted) and commits them. */
  commit(files: Record<string, string>, message?: string): Promise<string>;
  push(...args: string[]): Promise<RunResult>;
  git(...args: string[]): Promise<RunResult>;
}

/** Signs up, makes a key and registers it. */
export async function createUser(platform: Pick<RunningPlatform, 'baseUrl'>, email = 'ada@example.com'): Promise<User> {
  const home = await mkdtemp(join(tmpdir(), 'paas-user-'));
  const keyPath = join(home, 'id_ed25519');
  await runChecked('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', email, '-f', keyPath]);
  const ssh = [
    'ssh',
    '-F',
    'none',
    '-i',
    keyPath,
    '-o',
    'IdentitiesOnly=yes',
    '-o',
    `UserKnownHostsFile=${join(home, 'known_hosts')}`,
  ];
  const gitEnvironment = {
    GIT_SSH_COMMAND: [...ssh, '-o', 'StrictHostKeyChecking=accept-new', '-o', 'BatchMode=yes'].join(' '),
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_AUTHOR_NAME: 'Ada',
    GIT_AUTHOR_EMAIL: email,
    GIT_COMMITTER_NAME: 'Ada',
    GIT_COMMITTER_EMAIL: email,
  };
  let token = '';

  const ask = async (method: string, path: string, body?: unknown) => {
    const answer = await fetch(`${platform.baseUrl}${path}`, {
      method,
      headers: {
        ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, body: text === '' ? undefined : (JSON.parse(text) as unknown) };
  };
  const api = async <Data>(method: string, path: string, body?: unknown): Promise<Data> => {
    const answer = await ask(method, path, body);
    if (answer.status >= 400) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return (answer.body as { data: Data }).data;
  };
  const git = (cwd: string, args: readonly string[], options: RunOptions = {}) =>
    run('git', args, { ...options, cwd, env: { ...gitEnvironment, ...options.env } });

  token = (await api<{ access_token: string }>('POST', '/v1/signup', { email, password: 'correct horse battery' })).access_token;
  await api('POST', '/v1/auth/ssh-keys', { name: 'test', public_key: await readFile(`${keyPath}.pub`, 'utf8') });

  return {
    home,
    token,
    api,
    ask,
    git,
    createApp: (name) => api<AppAnswer>('POST', '/v1/apps', { name }),
    async createWorkingCopy(pushUrl, files) {
      const directory = await mkdtemp(join(home, 'work-'));
      await git(directory, ['init', '-q', '-b', 'main']);
      await git(directory, ['remote', 'add', 'paas', pushUrl]);
      const copy: WorkingCopy = {
        directory,
        async commit(changes, message = 'Change') {
          for (const [path, content] of Object.entries(changes)) {
            await mkdir(dirname(join(directory, path)), { recursive: true });
            await writeFile(join(directory, path), content);
          }
          await git(directory, ['add', '-A']);
          await git(directory, ['commit', '-q', '--allow-empty', '-m', message]);
          return (await git(directory, ['rev-parse', 'HEAD'])).stdout.trim();
        },
        push: (...args) => git(directory, ['push', ...(args.length === 0 ? ['paas', 'main'] : args)]),
        git: (...args) => git(directory, args),
      };
      await copy.commit(files, 'First');
      return copy;
    },
    remove: () => rm(home, { recursive: true, force: true }),
  };
}

/** An HTTP request to an app through the gateway, by Host header as `curl -H Host:` does. */
export function visit(
  platform: Pick<RunningPlatform, 'httpPort'>,
  appName: string,
  path = '/',
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const headers = { host: `${appName}.apps.localhost:${platform.httpPort}` };
    const asked = request({ host: '127.0.0.1', port: platform.httpPort, path, headers, agent: false }, (answer) => {
      let body = '';
      answer.setEncoding('utf8');
      answer.on('data', (text: string) => {
        body += text;
      });
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body }));
      answer.on('error', reject);
    });
    asked.on('error', reject);
    asked.end();
  });
}
