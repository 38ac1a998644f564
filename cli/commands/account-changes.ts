import { defineCommand } from '#cli/command-line/command.ts';
import type { Context } from '#cli/context/context.ts';
import { usageError } from '#cli/errors/cli-error.ts';
import { withLogin } from '#cli/session/stored-login.ts';
import { askSecret, readStdin } from '#cli/terminal/prompt.ts';
import { answerOf } from '#shared/api-client/client.ts';

const alternative = 'Use --password-stdin.';

export const accountPassword = defineCommand({
  name: 'account:password',
  group: 'Account',
  summary: 'change your password, and end all other sessions',
  args: {},
  flags: {
    'password-stdin': { kind: 'boolean', summary: 'read the current and the new password from standard input, one per line' },
  },
  details: ['SSH keys and API tokens work on. To delete them, run `paas sessions:end --others --keys --tokens`.'],
  async run(context, { flags }) {
    const [current, next] = flags['password-stdin'] ? await readLines(context, 2) : await askPasswords(context);
    if (next === undefined || next === '')
      throw usageError('Standard input must have two lines.', 'The current password, then the new one.');
    const body = { current_password: current ?? '', password: next };
    const { data } = await answerOf((await context.api()).PATCH('/v1/user', { body }));
    context.report('Your password is changed. All other sessions have ended.');
    context.print('', data);
  },
});

export const accountEmail = defineCommand({
  name: 'account:email',
  group: 'Account',
  summary: 'change your email address',
  args: { email: { kind: 'required', summary: 'the new address' } },
  flags: { 'password-stdin': { kind: 'boolean', summary: 'read the password from standard input' } },
  examples: ['paas account:email ada@example.com'],
  async run(context, { args, flags }) {
    const [current] = flags['password-stdin']
      ? await readLines(context, 1)
      : [context.env('PAAS_PASSWORD') ?? (await askSecret(context.terminal, 'Password', alternative))];
    const body = { current_password: current ?? '', email: args.email };
    const { data } = await answerOf((await context.api()).PATCH('/v1/user', { body }));
    const host = await context.host();
    await context.credentials.update((credentials) => {
      const login = credentials.hosts[host];
      return login === undefined ? undefined : withLogin(credentials, host, { ...login, email: data.email });
    });
    context.report(`Your email address is ${data.email}.`);
    context.print('', data);
  },
});

async function readLines(context: Context, count: number): Promise<string[]> {
  const lines = (await readStdin(context.terminal)).replace(/\r?\n$/, '').split(/\r?\n/);
  if (lines.length === count) return lines;
  throw usageError(`Standard input must have ${count === 1 ? 'one line' : `${count} lines`}.`, 'One password per line.');
}

async function askPasswords({ terminal }: Context): Promise<[string, string]> {
  const current = await askSecret(terminal, 'Current password', alternative);
  const next = await askSecret(terminal, 'New password', alternative);
  if ((await askSecret(terminal, 'New password again', alternative)) !== next)
    throw usageError('The two passwords are different.', 'Try again.');
  return [current, next];
}
