import { version } from '#cli/context/version.ts';
import { CliError, exitCodes, usageError } from '#cli/errors/cli-error.ts';
import { appOfUrl, type GitRemotes, gitRemotes, isRemoteName } from '#cli/git/git-remote.ts';
import { type Paint, painter } from '#cli/output/paint.ts';
import { logLine } from '#cli/output/sanitize.ts';
import { CredentialStore, credentialsPath } from '#cli/session/credentials.ts';
import { fixedToken, storedLogin } from '#cli/session/stored-login.ts';
import type { Terminal } from '#cli/terminal/terminal.ts';
import { type Api, anonymous, answerOf, createApi, createSend, type Send, type TokenSource } from '#shared/api-client/client.ts';

const defaultHost = 'http://localhost:8080';
export const defaultRemote = 'paas';
const ownHeaders = { 'user-agent': `paas-cli/${version}` };

/** The flags that name an app. */
export interface AppSelection {
  readonly app: string | undefined;
  /** A git remote. */
  readonly remote: string | undefined;
}

/** What a command works with: where it writes, which platform and app are meant, and a way to ask the platform. */
export class Context {
  readonly terminal: Terminal;
  /** Colours for data on stdout. */
  readonly paint: Paint;
  /** Colours for talk on stderr. */
  readonly paintTalk: Paint;
  readonly credentials: CredentialStore;
  readonly git: GitRemotes;
  readonly json: boolean;
  readonly #hostFlag: string | undefined;

  constructor(terminal: Terminal, options: { json: boolean; host: string | undefined }) {
    this.terminal = terminal;
    this.paint = painter(terminal.stdout, terminal.env);
    this.paintTalk = painter(terminal.stderr, terminal.env);
    this.credentials = new CredentialStore(credentialsPath(terminal.env));
    this.git = gitRemotes(terminal.cwd);
    this.json = options.json;
    this.#hostFlag = options.host;
  }

  now(): Date {
    return new Date();
  }

  env(name: string): string | undefined {
    const value = this.terminal.env[name];
    return value === '' ? undefined : value;
  }

  /** Data, as text or with --json as what the platform said. */
  print(text: string, value: unknown): void {
    this.terminal.stdout.write(this.json ? `${JSON.stringify(value, null, 2)}\n` : text);
  }

  /** A line of a log, untouched where no terminal shows it. */
  logLine(text: string): string {
    return this.terminal.stdout.isTTY === true ? logLine(text) : text;
  }

  /** A line for the person, on stderr. */
  talk(line: string): void {
    this.terminal.stderr.write(`${line}\n`);
  }

  /** Says what is being done, and once it is, `done`. */
  async doing<Result>(what: string, work: Promise<Result>, outcome: (result: Result) => string = () => 'done'): Promise<Result> {
    const { stderr } = this.terminal;
    const onTerminal = stderr.isTTY === true;
    if (onTerminal) stderr.write(`${what}... `);
    try {
      const result = await work;
      stderr.write(`${onTerminal ? '' : `${what}... `}${this.paintTalk('green', outcome(result))}\n`);
      return result;
    } catch (error) {
      stderr.write(`${onTerminal ? '' : `${what}... `}${this.paintTalk('red', 'failed')}\n`);
      throw error;
    }
  }

  /** --host, PAAS_API_URL, the platform of the last login, or the one on this machine; without a trailing slash. */
  async host(): Promise<string> {
    const named = this.#hostFlag ?? this.env('PAAS_API_URL');
    if (named !== undefined) return checkHost(named);
    return (await this.credentials.read()).current_host ?? defaultHost;
  }

  /** As whoever is logged in. @throws CliError when nobody is */
  async api(): Promise<Api> {
    const { host, send } = await this.connection();
    return createApi(host, send);
  }

  /** As nobody. */
  async anonymousApi(): Promise<Api> {
    return anonymousApiAt(await this.host());
  }

  /** For what the typed client cannot do, as event streams. */
  async connection(): Promise<{ host: string; send: Send }> {
    const host = await this.host();
    const tokens = this.#tokens(host);
    if ((await tokens.current()) === undefined) {
      throw new CliError(`You are not logged in at ${host}.`, {
        exitCode: exitCodes.notAllowed,
        hint: 'Log in with `paas login`, or make an account with `paas signup`.',
      });
    }
    return { host, send: createSend(host, tokens, this.#headers()) };
  }

  /** PAAS_TENANT names the team to act in; without it the platform takes the oldest. */
  #headers(): Record<string, string> {
    const tenant = this.env('PAAS_TENANT');
    if (tenant === undefined) return ownHeaders;
    if (!/^[a-z0-9]{1,64}$/.test(tenant))
      throw usageError('PAAS_TENANT is not the id of a team.', 'List yours with `paas teams`.');
    return { ...ownHeaders, 'x-paas-tenant': tenant };
  }

  /** PAAS_TOKEN where it is set, else the stored login. */
  #tokens(host: string): TokenSource {
    const given = this.env('PAAS_TOKEN');
    if (given !== undefined) return fixedToken(given);
    return storedLogin(this.credentials, host, (refreshToken) => refreshAt(host, refreshToken), this.now);
  }

  /** --app, the app of --remote, PAAS_APP, or the app of the git remote `paas`. */
  async appName(flags: AppSelection): Promise<string> {
    const name = await this.findAppName(flags);
    if (name !== undefined) return name;
    throw usageError(
      'Which app? There is no git remote "paas" here.',
      'Name it with -a NAME or PAAS_APP, or add the remote with `paas git:remote -a NAME`.',
    );
  }

  /** Undefined where `appName` would ask which. */
  async findAppName(flags: AppSelection): Promise<string | undefined> {
    if (flags.app !== undefined && flags.remote !== undefined) throw usageError('Give --app or --remote, not both.');
    if (flags.app !== undefined) return flags.app;
    if (flags.remote !== undefined) return this.#appOfRemote(flags.remote);
    return (
      this.env('PAAS_APP') ?? ((await this.git.read(defaultRemote)) === undefined ? undefined : this.#appOfRemote(defaultRemote))
    );
  }

  async #appOfRemote(remote: string): Promise<string> {
    const url = await this.git.read(checkRemoteName(remote));
    if (url === undefined) throw usageError(`There is no git remote "${remote}" here.`, 'List them with `git remote -v`.');
    const name = appOfUrl(url);
    if (name === undefined)
      throw usageError(`The git remote "${remote}" (${url}) does not name an app.`, 'Name it with -a NAME.');
    return name;
  }
}

/** @throws CliError when git would not take it */
export function checkRemoteName(remote: string): string {
  if (isRemoteName(remote)) return remote;
  throw usageError('That is not a name for a git remote.', 'Use letters, digits, "-", "_" and ".".');
}

function checkHost(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '' || url.hash !== '') {
    throw usageError('The platform must be given as a URL.', 'As http://localhost:8080 or https://paas.example.com.');
  }
  return (url.origin + url.pathname).replace(/\/+$/, '');
}

function anonymousApiAt(host: string): Api {
  return createApi(host, createSend(host, anonymous, ownHeaders));
}

async function refreshAt(host: string, refreshToken: string) {
  const call = anonymousApiAt(host).POST('/v1/auth/refresh', { body: { refresh_token: refreshToken } });
  if ((await call).response.status === 401) return undefined;
  return (await answerOf(call)).data;
}
