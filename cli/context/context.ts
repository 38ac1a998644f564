import { version } from '#cli/context/version.ts';
import { CliError, exitCodes, usageError } from '#cli/errors/cli-error.ts';
import { appOfUrl, type GitRemotes, gitRemotes, isRemoteName } from '#cli/git/git-remote.ts';
import { type Paint, painter } from '#cli/output/paint.ts';
import { logLine } from '#cli/output/sanitize.ts';
import { CredentialStore, credentialsPath } from '#cli/session/credentials.ts';
import { fixedToken, storedLogin } from '#cli/session/stored-login.ts';
import type { Terminal } from '#cli/terminal/terminal.ts';
import { type Api, anonymous, answerOf, createApi, createSend, type Send, type TokenSource } from '#shared/api-client/client.ts';

/** The platform that `npm start` starts on this machine. */
const defaultHost = 'http://localhost:8080';
/** Name of the git remote that `paas create` adds. */
export const defaultRemote = 'paas';
const ownHeaders = { 'user-agent': `paas-cli/${version}` };

/** The flags that name an app. */
export interface AppSelection {
  readonly app: string | undefined;
  /** A git remote. */
  readonly remote: string | undefined;
}

/** The environment of a command: its output, the selected platform and app, and clients of the API. */
export class Context {
  readonly terminal: Terminal;
  /** Styles for stdout. */
  readonly paint: Paint;
  /** Styles for stderr. */
  readonly paintStderr: Paint;
  readonly credentials: CredentialStore;
  readonly git: GitRemotes;
  readonly json: boolean;
  readonly #hostFlag: string | undefined;

  constructor(terminal: Terminal, options: { json: boolean; host: string | undefined }) {
    this.terminal = terminal;
    this.paint = painter(terminal.stdout, terminal.env);
    this.paintStderr = painter(terminal.stderr, terminal.env);
    this.credentials = new CredentialStore(credentialsPath(terminal.env));
    this.git = gitRemotes(terminal.cwd, terminal.env);
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

  /** Writes a result to stdout: `text`, or with --json `value` as JSON. */
  print(text: string, value: unknown): void {
    this.terminal.stdout.write(this.json ? `${JSON.stringify(value, null, 2)}\n` : text);
  }

  /** A line of a log, made safe for a terminal. Unchanged if stdout is no terminal. */
  logLine(text: string): string {
    return this.terminal.stdout.isTTY === true ? logLine(text) : text;
  }

  /** Writes a line for the user to stderr. */
  report(line: string): void {
    this.terminal.stderr.write(`${line}\n`);
  }

  /** Writes `label...` to stderr while `work` runs, then its outcome. */
  async showProgress<Result>(
    label: string,
    work: Promise<Result>,
    outcome: (result: Result) => string = () => 'done',
  ): Promise<Result> {
    const { stderr } = this.terminal;
    const onTerminal = stderr.isTTY === true;
    if (onTerminal) stderr.write(`${label}... `);
    try {
      const result = await work;
      stderr.write(`${onTerminal ? '' : `${label}... `}${this.paintStderr('green', outcome(result))}\n`);
      return result;
    } catch (error) {
      stderr.write(`${onTerminal ? '' : `${label}... `}${this.paintStderr('red', 'failed')}\n`);
      throw error;
    }
  }

  /** Base URL of the platform, without a trailing slash: --host, PAAS_API_URL, the platform of the last login, or this machine. */
  async host(): Promise<string> {
    const named = this.#hostFlag ?? this.env('PAAS_API_URL');
    if (named !== undefined) return checkHost(named);
    return (await this.credentials.read()).current_host ?? defaultHost;
  }

  /** A client with the token of the user. @throws CliError when nobody is logged in */
  async api(): Promise<Api> {
    const { host, send } = await this.connection();
    return createApi(host, send);
  }

  /** A client without a token. */
  async anonymousApi(): Promise<Api> {
    return anonymousApiAt(await this.host());
  }

  /** For requests that the typed client cannot send, such as event streams. @throws CliError when nobody is logged in */
  async connection(): Promise<{ host: string; send: Send }> {
    const host = await this.host();
    const tokens = this.#tokens(host);
    if ((await tokens.current()) === undefined) {
      throw new CliError(`You are not logged in at ${host}.`, {
        exitCode: exitCodes.notAllowed,
        hint: 'Log in with `paas login`, or create an account with `paas signup`.',
      });
    }
    return { host, send: createSend(host, tokens, this.#headers()) };
  }

  /** What authenticates a request of git: the token as the password. @throws CliError when nobody is logged in */
  async gitHeaders(): Promise<Record<string, string>> {
    const { host } = await this.connection();
    const token = (await this.#tokens(host).current()) ?? '';
    return { ...this.#headers(), authorization: `Basic ${Buffer.from(`paas:${token}`).toString('base64')}` };
  }

  /** PAAS_TENANT selects the team to act in. Default: the team that the user joined first. */
  #headers(): Record<string, string> {
    const tenant = this.env('PAAS_TENANT');
    if (tenant === undefined) return ownHeaders;
    if (!/^[a-z0-9]{1,64}$/.test(tenant))
      throw usageError('PAAS_TENANT is not the id of a team.', 'List your teams with `paas teams`.');
    return { ...ownHeaders, 'x-paas-tenant': tenant };
  }

  /** PAAS_TOKEN if it is set, otherwise the stored login. */
  #tokens(host: string): TokenSource {
    const given = this.env('PAAS_TOKEN');
    if (given !== undefined) return fixedToken(given);
    return storedLogin(this.credentials, host, (refreshToken) => refreshAt(host, refreshToken), this.now);
  }

  /** --app, the app of --remote, PAAS_APP, or the app of the git remote `paas`. @throws CliError without any of them */
  async appName(flags: AppSelection): Promise<string> {
    const name = await this.findAppName(flags);
    if (name !== undefined) return name;
    throw usageError(
      'No app is selected, and there is no git remote "paas" here.',
      'Select one with -a NAME or PAAS_APP, or add the remote with `paas git:remote -a NAME`.',
    );
  }

  /** Like `appName`, but undefined when no app is selected. */
  async findAppName(flags: AppSelection): Promise<string | undefined> {
    if (flags.app !== undefined && flags.remote !== undefined) throw usageError('--app and --remote cannot be used together.');
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
      throw usageError(`The git remote "${remote}" (${url}) does not belong to an app.`, 'Select the app with -a NAME.');
    return name;
  }
}

/** The name, if git accepts it for a remote. @throws CliError otherwise */
export function checkRemoteName(remote: string): string {
  if (isRemoteName(remote)) return remote;
  throw usageError('The name of the git remote is not valid.', 'Use letters, digits, "-", "_" and ".".');
}

function checkHost(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '' || url.hash !== '') {
    throw usageError('The platform must be a URL.', 'Example: http://localhost:8080 or https://paas.example.com.');
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
