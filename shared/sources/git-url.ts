import { AppError } from '#shared/errors.ts';

/** The parts of a repository address, independent of how it was written. */
export interface GitUrl {
  scheme: 'https' | 'http' | 'ssh';
  /** Lower case. */
  host: string;
  /** '' for the default port of the scheme. */
  port: string;
  /** User of an SSH address; '' for other schemes. */
  user: string;
  /** Without slashes at either end and without `.git`, for example 'ada/hello'. */
  path: string;
}

const scpForm = /^(?:([A-Za-z0-9_.-]+)@)?([A-Za-z0-9.-]+):(?!\/\/)\/?([^\s]+)$/;
const schemes: Record<string, GitUrl['scheme']> = { 'https:': 'https', 'http:': 'http', 'ssh:': 'ssh' };
const ports: Record<GitUrl['scheme'], string> = { https: '443', http: '80', ssh: '22' };

/** Parses `https://host/path.git`, `ssh://git@host/path.git` or `git@host:path.git`. Undefined for anything else. */
export function parseGitUrl(text: string): GitUrl | undefined {
  if (/[\s\\'"`$;&|<>\x00-\x1f\x7f]/.test(text)) return undefined;
  const scp = scpForm.exec(text);
  const written = scp === null || text.includes('://') ? text : `ssh://${scp[1] ?? 'git'}@${scp[2]}/${scp[3]}`;
  if (!URL.canParse(written)) return undefined;
  const url = new URL(written);
  const scheme = schemes[url.protocol];
  const path = url.pathname
    .replace(/^\/+/, '')
    .replace(/\/+$/, '')
    .replace(/\.git$/, '');
  const isPlain = url.search === '' && url.hash === '' && url.password === '' && /^[[a-z0-9]/i.test(url.hostname);
  // A path that begins with "-" would be read as an option on the other side.
  if (scheme === undefined || !isPlain || path === '' || path.startsWith('-')) return undefined;
  if (scheme !== 'ssh' && url.username !== '') return undefined;
  const port = url.port === ports[scheme] ? '' : url.port;
  return { scheme, host: url.hostname.toLowerCase(), port, user: scheme === 'ssh' ? url.username : '', path };
}

/** @param path the request field that the error names. @throws AppError validation_failed with the supported forms */
export function checkGitUrl(text: string, path: string): void {
  if (parseGitUrl(text) !== undefined) return;
  const message = 'must be https://host/path.git, ssh://git@host/path.git or git@host:path.git, without a password in it';
  throw new AppError('validation_failed', `The git URL ${message}.`, { details: [{ path, message }] });
}

/**
 * All addresses that mean this repository: with and without `.git`, with and without a trailing slash (SPEC.md §2), by HTTPS
 * and by SSH.
 */
export function spellingsOf({ host, port, scheme, user, path }: GitUrl): string[] {
  const at = port === '' ? host : `${host}:${port}`;
  // A port belongs to one scheme; the port of the other scheme is unknown.
  const bases =
    port === ''
      ? [`https://${host}/`, `http://${host}/`, ...['git@', ''].flatMap((who) => [`ssh://${who}${host}/`, `${who}${host}:`])]
      : [`${scheme}://${user === '' ? '' : `${user}@`}${at}/`, ...(scheme === 'ssh' ? [`ssh://git@${at}/`, `ssh://${at}/`] : [])];
  if (user !== '' && user !== 'git' && port === '') bases.push(`ssh://${user}@${host}/`, `${user}@${host}:`);
  return bases.flatMap((base) => ['', '.git', '/', '.git/'].map((end) => `${base}${path}${end}`));
}

/** Whether the address is the app's own repository on this platform, even if the platform's port has changed. */
export function isOwnRepository(gitUrl: string, pushUrl: string): boolean {
  const [one, own] = [parseGitUrl(gitUrl), parseGitUrl(pushUrl)];
  return one !== undefined && own !== undefined && one.scheme === 'ssh' && one.host === own.host && one.path === own.path;
}
