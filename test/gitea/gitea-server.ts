import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, copyFile, cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import type { GiteaProgram } from '#test/gitea/build-gitea.ts';
import { freePort } from '#test/support/servers/free-port.ts';

/** It refuses to run as root. */
const nobody = 65534;
const owner = { name: 'ann', password: 'pw-pw-pw-pw' };

export interface GiteaServer {
  /** `http://127.0.0.1:port` */
  readonly url: string;
  /** With the password of its one user, who is an administrator: for `git push`. */
  readonly urlWithPassword: string;
  /** One request of its API as that user; `path` as '/user/repos'. Rejects on a status of 400 or more. */
  api<Data>(method: string, path: string, body?: unknown): Promise<Data>;
  start(): Promise<void>;
  stop(): Promise<void>;
  remove(): Promise<void>;
}

/** A real Gitea with SQLite on loopback, in a directory of its own. */
export async function startGitea(program: GiteaProgram): Promise<GiteaServer> {
  const isRoot = process.getuid?.() === 0;
  // Nobody cannot enter the directories of root: neither those of a test run nor the caches.
  const directory = await mkdtemp(join(isRoot ? '/tmp' : tmpdir(), 'paas-gitea-'));
  const { path, staticRoot } = isRoot ? await copyProgram(program, directory) : program;
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  for (const name of ['home', 'data']) await mkdir(join(directory, name));
  await writeFile(join(directory, 'app.ini'), settingsOf(directory, port, staticRoot));
  if (isRoot) for (const name of ['.', 'home', 'data', 'app.ini']) await chown(join(directory, name), nobody, nobody);
  const options = {
    cwd: directory,
    env: { PATH: program.searchPath, HOME: join(directory, 'home'), USER: isRoot ? 'nobody' : userInfo().username },
    ...(isRoot ? { uid: nobody, gid: nobody } : {}),
  };
  const launch = (args: readonly string[]): ChildProcess =>
    spawn(path, ['-c', join(directory, 'app.ini'), ...args], { ...options, stdio: ['ignore', 'pipe', 'pipe'] });

  let server: ChildProcess | undefined;
  const start = async (): Promise<void> => {
    const child = launch(['web']);
    server = child;
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => (output += chunk.toString()));
    while (
      !(await fetch(`${url}/api/v1/version`).then(
        (answer) => answer.ok,
        () => false,
      ))
    ) {
      if (child.exitCode !== null) throw new Error(`Gitea ended with ${child.exitCode}:\n${output}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  };
  const stop = async (): Promise<void> => {
    if (server === undefined || server.exitCode !== null) return;
    const exited = once(server, 'exit');
    server.kill('SIGTERM');
    await exited;
  };

  await start();
  const user = ['--username', owner.name, '--password', owner.password, '--email', 'ann@example.com', '--admin'];
  const created = launch(['admin', 'user', 'create', ...user, '--must-change-password=false']);
  const [code] = (await once(created, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`Gitea's user could not be created: ${code}.`);

  return {
    url,
    urlWithPassword: url.replace('//', `//${owner.name}:${owner.password}@`),
    start,
    stop,
    async api<Data>(method: string, path: string, body?: unknown): Promise<Data> {
      const answer = await fetch(`${url}/api/v1${path}`, {
        method,
        headers: {
          authorization: `Basic ${Buffer.from(`${owner.name}:${owner.password}`).toString('base64')}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      if (!answer.ok) throw new Error(`Gitea: ${method} ${path}: ${answer.status} ${text}`);
      return (text === '' ? undefined : JSON.parse(text)) as Data;
    },
    async remove() {
      await stop();
      await rm(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
    },
  };
}

async function copyProgram(program: GiteaProgram, directory: string): Promise<GiteaProgram> {
  const [path, staticRoot] = [join(directory, 'gitea'), join(directory, 'static')];
  await copyFile(program.path, path);
  for (const name of ['templates', 'options', 'public'])
    await cp(join(program.staticRoot, name), join(staticRoot, name), { recursive: true });
  return { ...program, path, staticRoot };
}

function settingsOf(directory: string, port: number, staticRoot: string): string {
  return `RUN_MODE = prod
RUN_USER = ${process.getuid?.() === 0 ? 'nobody' : userInfo().username}
WORK_PATH = ${directory}
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = ${port}
ROOT_URL = http://127.0.0.1:${port}/
STATIC_ROOT_PATH = ${staticRoot}
DISABLE_SSH = true
OFFLINE_MODE = true
LFS_START_SERVER = true
LFS_JWT_SECRET = ${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url')}
[lfs]
PATH = ${directory}/data/lfs
[database]
DB_TYPE = sqlite3
PATH = ${directory}/data/gitea.db
[security]
INSTALL_LOCK = true
SECRET_KEY = ${crypto.randomUUID()}
[service]
DISABLE_REGISTRATION = true
[webhook]
ALLOWED_HOST_LIST = loopback
[log]
LEVEL = warn
`;
}
