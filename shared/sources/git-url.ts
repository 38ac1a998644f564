import { AppError } from '#shared/errors.ts';

/** Where a repository is, however its address was written. */
export interface GitUrl {
  scheme: 'https' | 'http' | 'ssh';
  /** Lower case. */
  host: string;
  /** '' for the scheme's own. */
  port: string;
  /** Of an SSH address; '' elsewhere. */
  user: string;
  /** Without slash at either end and without `.git`: 'ada/hello'. */
  path: string;
}

const scpForm = /^(?:([A-Za-z0-9_.-]+)@)?([A-Za-z0-9.-]+):(?!\/\/)\/?([^\s]+)$/;
const schemes: Record<string, GitUrl['scheme']> = { 'https:': 'https', 'http:': 'http', 'ssh:': 'ssh' };
const ports: Record<GitUrl['scheme'], string> = { https: '443', http: '80', ssh: '22' };

/** Reads `https://host/path.git`, `ssh://git@host/path.git` or `git@host:path.git`; undefined for anything else. */
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

/** @throws AppError validation_failed saying which addresses are taken */
export function checkGitUrl(text: string, path: string): void {
  if (parseGitUrl(text) !== undefined) return;
  const message = 'must be https://host/path.git, ssh://git@host/path.git or git@host:path.git, without a password in it';
  throw new AppError('validation_failed', `The address of the git repository ${message}.`, { details: [{ path, message }] });
}

/**
 * Every way an app may have written the address of this repository: canonical, with and without `.git`, with a slash at
 * its end (SPEC.md §2), by HTTPS and by SSH.
 */
export function spellingsOf({ host, port, scheme, user, path }: GitUrl): string[] {
  const at = port === '' ? host : `${host}:${port}`;
  // A port belongs to one scheme: the other form of the same repository is then at another one, which nobody told us.
  const bases =
    port === ''
      ? [`https://${host}/`, `http://${host}/`, ...['git@', ''].flatMap((who) => [`ssh://${who}${host}/`, `${who}${host}:`])]
      : [`${scheme}://${user === '' ? '' : `${user}@`}${at}/`, ...(scheme === 'ssh' ? [`ssh://git@${at}/`, `ssh://${at}/`] : [])];
  if (user !== '' && user !== 'git' && port === '') bases.push(`ssh://${user}@${host}/`, `${user}@${host}:`);
  return bases.flatMap((base) => ['', '.git', '/', '.git/'].map((end) => `${base}${path}${end}`));
}

/** Whether the address is that of the app's own repository here, also when the platform's port has changed since. */
export function isOwnRepository(gitUrl: string, pushUrl: string): boolean {
  const [one, own] = [parseGitUrl(gitUrl), parseGitUrl(pushUrl)];
  return one !== undefined && own !== undefined && one.scheme === 'ssh' && one.host === own.host && one.path === own.path;
}
