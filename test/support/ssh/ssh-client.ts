import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';

/** A key pair made by ssh-keygen. */
export interface KeyFile {
  /** Path of the private key. */
  readonly file: string;
  /** `type base64 comment` */
  readonly publicKey: string;
}

/** The result of a program. */
export interface Ran {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program without the machine's git configuration and home directory. */
export async function run(
  command: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>>; readonly input?: string } = {},
): Promise<Ran> {
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: { PATH: process.env['PATH'], HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1', ...options.env },
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  child.stdin.on('error', () => {});
  child.stdin.end(options.input ?? '');
  const [status] = (await once(child, 'close')) as [number | null];
  return { status: status ?? -1, stdout, stderr };
}

/** Makes a key pair with ssh-keygen. @param type as its option -t */
export async function makeKey(directory: string, name: string, type: string, bits?: number): Promise<KeyFile> {
  const file = path.join(directory, name);
  const made = await run('ssh-keygen', [
    '-q',
    '-t',
    type,
    ...(bits === undefined ? [] : ['-b', String(bits)]),
    '-N',
    '',
    '-C',
    name,
    '-f',
    file,
  ]);
  if (made.status !== 0) throw new Error(made.stderr);
  return { file, publicKey: (await readFile(`${file}.pub`, 'utf8')).trim() };
}

/** Arguments of `ssh` that ignore the machine's own configuration, agent and keys. */
export function sshOptions(port: number, key: KeyFile | undefined, more: readonly string[] = []): string[] {
  return [
    '-F',
    'none',
    '-p',
    String(port),
    '-o',
    'StrictHostKeyChecking=no',
    '-o',
    'UserKnownHostsFile=/dev/null',
    '-o',
    'LogLevel=INFO',
    '-o',
    'IdentitiesOnly=yes',
    '-o',
    'IdentityAgent=none',
    ...(key === undefined ? ['-o', 'IdentityFile=none'] : ['-i', key.file]),
    ...more,
  ];
}

/** Runs `ssh` against the server on the loopback's `port`. @param more options */
export function ssh(port: number, key: KeyFile | undefined, args: readonly string[], more: readonly string[] = []): Promise<Ran> {
  return run('ssh', [...sshOptions(port, key, more), ...args]);
}

/** Environment that makes git use `sshOptions`. */
export function gitSshEnv(port: number, key: KeyFile | undefined, more: readonly string[] = []): Record<string, string> {
  return {
    GIT_SSH_COMMAND: ['ssh', ...sshOptions(port, key, more)].join(' '),
    GIT_SSH_VARIANT: 'ssh',
    GIT_AUTHOR_NAME: 'Ada',
    GIT_AUTHOR_EMAIL: 'ada@example.com',
    GIT_COMMITTER_NAME: 'Ada',
    GIT_COMMITTER_EMAIL: 'ada@example.com',
  };
}

/** Creates a work tree with one commit on `main`. */
export async function makeWorkTree(directory: string, files: Readonly<Record<string, string | Uint8Array>>): Promise<void> {
  await mkdir(directory, { recursive: true });
  for (const [name, content] of Object.entries(files)) await writeFile(path.join(directory, name), content);
  const env = gitSshEnv(0, undefined);
  for (const args of [
    ['init', '--quiet', '--initial-branch=main'],
    ['add', '--all'],
    ['commit', '--quiet', '--message=first'],
  ]) {
    const ran = await run('git', args, { cwd: directory, env });
    if (ran.status !== 0) throw new Error(ran.stderr);
  }
}
