import { defineCommand } from '#cli/command-line/command.ts';
import type { Context } from '#cli/context/context.ts';
import { usageError } from '#cli/errors/cli-error.ts';
import { type GivenTokens, toLogin, withLogin, withoutLogin } from '#cli/session/stored-login.ts';
import { ask, askSecret, readStdin } from '#cli/terminal/prompt.ts';
import { isInteractive } from '#cli/terminal/terminal.ts';
import { answerOf, succeeded } from '#shared/api-client/client.ts';

const passwordFlags = {
  email: { kind: 'string', short: 'e', value: 'EMAIL', summary: 'your email address (asked for when missing)' },
  'password-stdin': { kind: 'boolean', summary: 'read the password from standard input' },
  password: { kind: 'refused', reason: 'everybody on this machine could read it. Use --password-stdin or PAAS_PASSWORD.' },
} as const;

interface Asked {
  readonly email: string | undefined;
  readonly 'password-stdin': boolean;
}

export const signup = defineCommand({
  name: 'signup',
  group: 'Account',
  summary: 'make an account and log in',
  args: {},
  flags: {
    ...passwordFlags,
    team: { kind: 'string', value: 'NAME', summary: 'what to call your tenant' },
    invitation: {
      kind: 'string',
      value: 'INVITATION',
      summary: 'join that team instead of making one; needed where sign-up is closed',
    },
  },
  examples: ['paas signup', 'printf \'%s\' "$PASSWORD" | paas signup --email you@example.com --password-stdin'],
  async run(context, { flags }) {
    const host = await context.host();
    warnOfPlainHttp(context, host);
    const email = await readEmail(context, flags);
    const password = await readPassword(context, flags, { twice: true });
    const api = await context.anonymousApi();
    const body = {
      email,
      password,
      ...(flags.team === undefined ? {} : { tenant_name: flags.team }),
      ...(flags.invitation === undefined ? {} : { invitation_token: flags.invitation }),
    };
    const { data } = await answerOf(api.POST('/v1/signup', { body }));
    await remember(context, host, data.user.email, data);
    context.talk(`Welcome. You are logged in at ${host} as ${data.user.email}.`);
    context.talk('Next: `paas keys:add` registers your SSH key, `paas create` makes an app.');
    context.print('', { user: data.user, tenant: data.tenant });
  },
});

export const login = defineCommand({
  name: 'login',
  aliases: ['auth:login'],
  group: 'Account',
  summary: 'log in at the platform',
  args: {},
  flags: {
    ...passwordFlags,
    interactive: { kind: 'boolean', short: 'i', summary: 'ask on the terminal, even where PAAS_PASSWORD is set' },
  },
  details: [
    'The login is kept in ~/.config/paas/credentials.json (or $XDG_CONFIG_HOME/paas), readable by you only, one for each platform.',
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
    context.talk(`You are logged in at ${host} as ${email}.`);
    context.print('', { host, email });
  },
});

export const logout = defineCommand({
  name: 'logout',
  aliases: ['auth:logout'],
  group: 'Account',
  summary: 'forget the login, here and at the platform',
  args: {},
  flags: {},
  async run(context) {
    const host = await context.host();
    const stored = (await context.credentials.read()).hosts[host];
    if (stored === undefined) {
      context.talk(`You were not logged in at ${host}.`);
      return;
    }
    await context.credentials.update((credentials) => withoutLogin(credentials, host));
    context.talk(`Logged out at ${host}.`);
    if (stored.refresh_token === undefined) return;
    const api = await context.anonymousApi();
    await succeeded(api.POST('/v1/auth/logout', { body: { refresh_token: stored.refresh_token } }));
  },
});

export const whoami = defineCommand({
  name: 'whoami',
  aliases: ['auth:whoami'],
  group: 'Account',
  summary: 'who is logged in, and where',
  args: {},
  flags: {},
  async run(context) {
    const host = await context.host();
    const { data } = await answerOf((await context.api()).GET('/v1/user'));
    if (isInteractive(context.terminal)) context.talk(context.paintTalk('dim', `${host}, ${data.tenant.name}, ${data.role}`));
    context.print(`${data.email}\n`, { ...data, host });
  },
});

async function remember(context: Context, host: string, email: string, tokens: GivenTokens): Promise<void> {
  await context.credentials.update((credentials) => withLogin(credentials, host, toLogin(email, tokens, context.now())));
}

async function readEmail(context: Context, flags: Asked): Promise<string> {
  const email = flags.email ?? (await ask(context.terminal, 'Email', 'Give it with --email.'));
  if (email === '') throw usageError('An email address is needed.', 'Give it with --email.');
  return email;
}

async function readPassword(
  context: Context,
  flags: Asked & { readonly interactive?: boolean },
  { twice }: { twice: boolean },
): Promise<string> {
  if (flags['password-stdin']) {
    const password = (await readStdin(context.terminal)).replace(/\r?\n$/, '');
    if (password === '')
      throw usageError('Standard input holds no password.', 'As in: printf \'%s\' "$PASSWORD" | paas login --password-stdin');
    return password;
  }
  const given = context.env('PAAS_PASSWORD');
  if (given !== undefined && flags.interactive !== true) return given;
  const otherwise = 'Use --password-stdin or PAAS_PASSWORD.';
  const password = await askSecret(context.terminal, 'Password', otherwise);
  if (twice && (await askSecret(context.terminal, 'Once more', otherwise)) !== password) {
    throw usageError('The two passwords differ.', 'Try again.');
  }
  return password;
}

function warnOfPlainHttp(context: Context, host: string): void {
  const { protocol, hostname } = new URL(host);
  const local =
    hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]' || hostname.startsWith('127.');
  if (protocol === 'http:' && !local)
    context.talk(
      `${context.paintTalk('yellow', 'Warning:')} ${host} is not encrypted: others on the way can read your password.`,
    );
}
