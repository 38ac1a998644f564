export type GitService = 'receive-pack' | 'upload-pack';

export interface GitCommand {
  readonly service: GitService;
  /** As typed, `.git` taken off. */
  readonly appName: string;
}

/** `git-receive-pack 'hello.git'` and what clients make of it: `git receive-pack`, no quotes, a leading `/`, no `.git`. */
const commandPattern = /^git[- ](receive-pack|upload-pack) (?:'([^']*)'|([^' ]+))$/;
const appPattern = /^\/?([A-Za-z0-9][A-Za-z0-9-]{0,99}?)(?:\.git)?\/?$/;

/** The git command in an SSH exec request, or undefined for anything else. No shell ever sees the text. */
export function parseGitCommand(text: string): GitCommand | undefined {
  const [, service, quoted, bare] = commandPattern.exec(text) ?? [];
  const appName = appPattern.exec(quoted ?? bare ?? '')?.[1];
  if (service === undefined || appName === undefined) return undefined;
  return { service: service as GitService, appName };
}

/** What `git archive --remote` asks for. */
export function isArchiveRequest(text = ''): boolean {
  return /^git[- ]upload-archive\b/.test(text);
}

/**
 * The highest protocol version in a client's GIT_PROTOCOL, a colon-separated list, as `version=2`.
 * Undefined when there is anything in it that is not a version: such a variable is refused.
 */
export function parseGitProtocol(value: string): string | undefined {
  if (!/^version=[012](:version=[012])*$/.test(value)) return undefined;
  return value.split(':').sort().at(-1);
}
