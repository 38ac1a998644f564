import { defineCommand } from '#cli/command-line/command.ts';
import type { Context } from '#cli/context/context.ts';
import { usageError } from '#cli/errors/cli-error.ts';
import { type IssuedTokens, toLogin, withLogin, withoutLogin } from '#cli/session/stored-login.ts';
import { ask, askSecret, readStdin } from '#cli/terminal/prompt.ts';
import { isInteractive } from '#cli/terminal/terminal.ts';
import { answerOf, succeeded } from '#shared/api-client/client.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';

const passwordFlags = {
  email: { kind: 'string', short: 'e', value: 'EMAIL', summary: 'your email address (default: ask)' },
  'password-stdin': { kind: 'boolean', summary: 'read the password from standard input' },
  password: { kind: 'refused', reason: 'every user of this machine could read it. Use --password-stdin or PAAS_PASSWORD.' },
} as const;

interface EmailAndPasswordFlags {
  readonly email: string | undefined;
  readonly 'password-stdin': boolean;
}

export const signup = defineCommand({
  name: 'signup',
  group: 'Account',
  summary: 'create an account and log in',
  args: {},
  flags: {
    ...passwordFlags,
    team: { kind: 'string', value: 'NAME', summary: 'name of your team' },
    invitation: {
      kind: 'string',
      value: 'INVITATION',
      summary: 'join this team instead of creating one (required if signup is by invitation)',
    },
  },
  examples: ['paas signup', 'printf \'%s\' "$PASSWORD" | paas signup --email you@example.com --password-stdin'],
  async run(context, { flags }) {
    const host = await context.host();
    warnOfPlainHttp(context, host);
    const email = await readEmail(context, flags);
    const password = await readPassword(context, flags, { twice: true });
    const api = await context.anonymousApi();
    const body = omitUndefined({ email, password, tenant_name: flags.team, invitation_token: flags.invitation });
    const { data } = await answerOf(api.POST('/v1/signup', { body }));
    await remember(context, host, data.user.email, data);
    context.report(`Welcome. You are logged in at ${host} as ${data.user.email}.`);
    context.report('Next: `paas keys:add` adds your SSH key, `paas create` creates an app.');
    context.print('', { user: data.user, tenant: data.tenant });
  },
});

export const login = defineCommand({
  name: 'login',
  aliases: ['auth:login'],
  group: 'Account',
  summary: 'log in',
  args: {},
  flags: {
    ...passwordFlags,
    interactive: { kind: 'boolean', short: 'i', summary: 'ask on the terminal, also if PAAS_PASSWORD is set' },
  },
  details: [
    'Logins are stored in ~/.config/paas/credentials.json (or $XDG_CONFIG_HOME/paas), one per platform. Only you can read the file.',
  ],
  examples: ['paas login', 'paas login --host https://paas.example.com'],
  async run(context, { flags }) {
    const host = await context.host();
    warnOfPlainHttp(context, host);
    const email = await readEmail(context, flags);
    const password = await readPassword(context, flags, { twice: false });
    const api = await context.anonymousApi();
    const { data } = await answerOf(api.POST('/v1/auth/login', { body: { email, password } }));
    await remember(context, host, email, data);
    context.report(`You are logged in at ${host} as ${email}.`);
    context.print('', { host, email });
  },
});

export const logout = defineCommand({
  name: 'logout',
  aliases: ['auth:logout'],
  group: 'Account',
  summary: 'log out',
  args: {},
  flags: {},
  async run(context) {
    const host = await context.host();
    const stored = (await context.credentials.read()).hosts[host];
    if (stored === undefined) {
      context.report(`You are not logged in at ${host}.`);
      return;
    }
    await context.credentials.update((credentials) => withoutLogin(credentials, host));
    context.report(`You are logged out at ${host}.`);
    if (stored.refresh_token === undefined) return;
    const api = await context.anonymousApi();
    await succeeded(api.POST('/v1/auth/logout', { body: { refresh_token: stored.refresh_token } }));
  },
});

export const whoami = defineCommand({
  name: 'whoami',
  aliases: ['auth:whoami'],
  group: 'Account',
  summary: 'show the current user',
  args: {},
  flags: {},
  async run(context) {
    const host = await context.host();
    const { data } = await answerOf((await context.api()).GET('/v1/user'));
    if (isInteractive(context.terminal)) context.report(context.paintStderr('dim', `${host}, ${data.tenant.name}, ${data.role}`));
    context.print(`${data.email}\n`, { ...data, host });
  },
});

async function remember(context: Context, host: string, email: string, tokens: IssuedTokens): Promise<void> {
  await context.credentials.update((credentials) => withLogin(credentials, host, toLogin(email, tokens, context.now())));
}

async function readEmail(context: Context, flags: EmailAndPasswordFlags): Promise<string> {
  const email = flags.email ?? (await ask(context.terminal, 'Email', 'Use --email.'));
  if (email === '') throw usageError('An email address is required.', 'Use --email.');
  return email;
}

async function readPassword(
  context: Context,
  flags: EmailAndPasswordFlags & { readonly interactive?: boolean },
  { twice }: { twice: boolean },
): Promise<string> {
  if (flags['password-stdin']) {
    const password = (await readStdin(context.terminal)).replace(/\r?\n$/, '');
    if (password === '')
      throw usageError('Standard input has no password.', 'Example: printf \'%s\' "$PASSWORD" | paas login --password-stdin');
    return password;
  }
  const given = context.env('PAAS_PASSWORD');
  if (given !== undefined && flags.interactive !== true) return given;
  const alternative = 'Use --password-stdin or PAAS_PASSWORD.';
  const password = await askSecret(context.terminal, 'Password', alternative);
  if (twice && (await askSecret(context.terminal, 'Password again', alternative)) !== password) {
    throw usageError('The two passwords are different.', 'Try again.');
  }
  return password;
}

function warnOfPlainHttp(context: Context, host: string): void {
  const { protocol, hostname } = new URL(host);
  const local =
    hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]' || hostname.startsWith('127.');
  if (protocol === 'http:' && !local)
    context.report(
      `${context.paintStderr('yellow', 'Warning:')} ${host} is not encrypted. Others on the network can read your password.`,
    );
}
