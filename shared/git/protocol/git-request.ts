/**
 * Reads which repository a git client asks for, and which service: from a command over SSH (git-shell(1)) and from an address
 * over HTTP (gitprotocol-http(5)). Runs on any web-standard runtime.
 */

/** A service of a git server. Clients put `git-` in front of it. */
export type GitService = 'receive-pack' | 'upload-pack';

/** What a client asks for over SSH. */
export interface GitCommand {
  readonly service: GitService;
  /** The name of the repository without `.git`, as typed. */
  readonly appName: string;
}

/** What a client asks for over HTTP. */
export interface GitAddress extends GitCommand {
  /** The client first reads the refs in a request of its own, and then asks for a service once or more. */
  readonly step: 'advertise' | 'serve';
}

/** `git-receive-pack 'hello.git'` and its variants: `git receive-pack`, no quotes, a leading `/`, no `.git`. */
const commandPattern = /^git[- ](receive-pack|upload-pack) (?:'([^']*)'|([^' ]+))$/;
const repositoryPattern = /^\/?([A-Za-z0-9][A-Za-z0-9-]{0,99}?)(?:\.git)?\/?$/;

/** The git command in an SSH exec request; undefined for any other text. The text is never passed to a shell. */
export function parseGitCommand(text: string): GitCommand | undefined {
  const [, service, quoted, bare] = commandPattern.exec(text) ?? [];
  const appName = repositoryPattern.exec(quoted ?? bare ?? '')?.[1];
  if (service === undefined || appName === undefined) return undefined;
  return { service: service as GitService, appName };
}

/** Whether an SSH exec request comes from `git archive --remote`. */
export function isArchiveRequest(text = ''): boolean {
  return /^git[- ]upload-archive\b/.test(text);
}

/** Whether an SSH exec request comes from git-lfs, whose hook runs before `git push`. */
export function isLargeFilesRequest(text = ''): boolean {
  return /^git-lfs-(authenticate|transfer)\b/.test(text);
}

const pathPattern = /^\/([A-Za-z0-9][A-Za-z0-9-]{0,99})\.git\/(?:(info\/refs)|git-(receive-pack|upload-pack))$/;
const servicePattern = /^git-(receive-pack|upload-pack)$/;

/** Undefined for any other address, and for git's dumb protocol, which is not supported. */
export function parseGitAddress(method: string, { pathname, searchParams }: URL): GitAddress | undefined {
  const [, appName, refs, posted] = pathPattern.exec(pathname) ?? [];
  if (appName === undefined) return undefined;
  const service = refs === undefined ? posted : servicePattern.exec(searchParams.get('service') ?? '')?.[1];
  if (service === undefined || method !== (refs === undefined ? 'POST' : 'GET')) return undefined;
  return { appName, service: service as GitService, step: refs === undefined ? 'serve' : 'advertise' };
}

/**
 * The highest protocol version in a client's GIT_PROTOCOL or `Git-Protocol` (a colon-separated list), as `version=2`.
 * Undefined when the list is empty or has anything in it that is not a version.
 */
export function parseGitProtocol(value: string): string | undefined {
  if (!/^version=[012](:version=[012])*$/.test(value)) return undefined;
  return value.split(':').sort().at(-1);
}
