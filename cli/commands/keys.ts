import { mkdir } from 'node:fs/promises';
import { homedir, hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { defineCommand } from '#cli/command-line/command.ts';
import type { Context } from '#cli/context/context.ts';
import { CliError, exitCodes } from '#cli/errors/cli-error.ts';
import { findPublicKey, type PublicKey, parsePublicKey, readPublicKey } from '#cli/git/ssh-key.ts';
import { signText } from '#cli/git/ssh-signature.ts';
import { relativeTime } from '#cli/output/relative-time.ts';
import { oneLine } from '#cli/output/sanitize.ts';
import { table } from '#cli/output/table.ts';
import { listKeys } from '#cli/queries/list-keys.ts';
import { confirm, readStdin } from '#cli/terminal/prompt.ts';
import { runInForeground } from '#cli/terminal/run-tool.ts';
import { isInteractive } from '#cli/terminal/terminal.ts';
import { ApiError } from '#shared/api-client/api-error.ts';
import { type Api, answerOf, succeeded } from '#shared/api-client/client.ts';

/** What a key from standard input has for a path. */
const standardInput = 'standard input';
/** Characters. Longer comments are cut. */
const longestName = 100;

export const keys = defineCommand({
  name: 'keys',
  aliases: ['keys:list'],
  group: 'SSH keys',
  summary: 'list your SSH keys',
  args: {},
  flags: {},
  async run(context) {
    const found = await listKeys(await context.api());
    if (found.length === 0) context.report('You have no SSH keys. Add one with `paas keys:add`.');
    const rows = found.map((key) => [
      oneLine(key.name),
      key.fingerprint,
      `added ${relativeTime(key.created_at, context.now())}`,
      key.last_used_at === null ? 'never used' : `used ${relativeTime(key.last_used_at, context.now())}`,
    ]);
    context.print(table(rows), found);
  },
});

export const keysAdd = defineCommand({
  name: 'keys:add',
  group: 'SSH keys',
  summary: 'add an SSH key for git push',
  args: { path: { kind: 'optional', summary: 'public key file, or - for standard input (default: your key in ~/.ssh)' } },
  flags: { name: { kind: 'string', value: 'NAME', summary: 'name of the key (default: its comment)' } },
  examples: ['paas keys:add', 'paas keys:add ~/.ssh/work.pub --name work'],
  async run(context, { args, flags }) {
    const api = await context.api();
    const key = await chooseKey(context, args.path);
    const name = flags.name ?? (oneLine(key.comment).trim().slice(0, longestName) || hostname());
    const body = { name, public_key: key.text };
    try {
      const { data } = await context.showProgress(`Adding ${key.path}`, answerOf(api.POST('/v1/auth/ssh-keys', { body })));
      context.print(`${data.fingerprint}\n`, data);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'conflict') throw error;
      const mine = (await listKeys(api)).find(({ fingerprint }) => fingerprint === key.fingerprint);
      if (mine !== undefined) {
        context.report('The key is already registered.');
        return context.print(`${mine.fingerprint}\n`, mine);
      }
      const signature = await proveKey(context, api, key);
      if (signature === undefined) throw error;
      const { data } = await context.showProgress(
        'Moving the key from another account to yours',
        answerOf(api.POST('/v1/auth/ssh-keys', { body: { ...body, signature } })),
      );
      context.print(`${data.fingerprint}\n`, data);
    }
  },
});

export const keysRemove = defineCommand({
  name: 'keys:remove',
  group: 'SSH keys',
  summary: 'remove an SSH key',
  args: { key: { kind: 'required', summary: 'fingerprint, name or id, from `paas keys`' } },
  flags: {},
  async run(context, { args }) {
    const api = await context.api();
    const found = (await listKeys(api)).filter((key) => [key.fingerprint, key.name, key.id].includes(args.key));
    const [key] = found;
    if (key === undefined) {
      throw new CliError('You have no such SSH key.', { exitCode: exitCodes.notFound, hint: 'List them with `paas keys`.' });
    }
    if (found.length > 1) {
      throw new CliError(`${found.length} of your SSH keys have that name.`, {
        exitCode: exitCodes.conflict,
        hint: 'Use the fingerprint.',
      });
    }
    await context.showProgress(
      `Removing ${key.fingerprint}`,
      succeeded(api.DELETE('/v1/auth/ssh-keys/{key}', { params: { path: { key: key.id } } })),
    );
    context.print('', key);
  },
});

async function chooseKey(context: Context, path: string | undefined): Promise<PublicKey> {
  if (path === '-') return parsePublicKey(await readStdin(context.terminal), standardInput);
  if (path !== undefined) return readPublicKey(resolve(context.terminal.cwd, path));
  const home = context.env('HOME') ?? homedir();
  return (await findPublicKey(home)) ?? createKey(context, join(home, '.ssh', 'id_ed25519'));
}

async function createKey(context: Context, path: string): Promise<PublicKey> {
  const missing = 'You have no SSH key in ~/.ssh.';
  const alternative = 'Create one with `ssh-keygen -t ed25519`, or use the path of another.';
  if (!isInteractive(context.terminal)) throw new CliError(missing, { hint: alternative });
  context.report(missing);
  if (!(await confirm(context.terminal, 'Create one now?', alternative)))
    throw new CliError('No key was added.', { hint: alternative });
  await mkdir(join(path, '..'), { recursive: true, mode: 0o700 });
  if ((await runInForeground('ssh-keygen', ['-t', 'ed25519', '-f', path])) !== 0)
    throw new CliError('ssh-keygen did not create a key.', { hint: alternative });
  return readPublicKey(`${path}.pub`);
}

/** A signature by the key that names this account and platform. Undefined without the private key. */
async function proveKey(context: Context, api: Api, key: PublicKey): Promise<string | undefined> {
  if (key.path === standardInput) return undefined;
  const { data: user } = await answerOf(api.GET('/v1/user'));
  const text = `SSH key of user ${user.id} at ${await context.host()}`;
  return signText(key.path, text);
}
