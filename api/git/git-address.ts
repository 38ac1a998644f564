export type GitService = 'git-receive-pack' | 'git-upload-pack';

/** What a request of a git client is about (gitprotocol-http(5)). */
export interface GitAddress {
  appName: string;
  service: GitService;
  /** The refs come first, in a request of their own; then, once or more, what is asked for. */
  step: 'advertise' | 'serve';
}

const pathPattern = /^\/([A-Za-z0-9][A-Za-z0-9-]{0,99})\.git\/(?:(info\/refs)|(git-(?:receive|upload)-pack))$/;

/** Undefined for any other address, and for the dumb protocol that we do not speak. */
export function parseGitAddress(method: string, { pathname, searchParams }: URL): GitAddress | undefined {
  const [, appName, refs, posted] = pathPattern.exec(pathname) ?? [];
  if (appName === undefined) return undefined;
  const service = refs === undefined ? posted : searchParams.get('service');
  if (service !== 'git-receive-pack' && service !== 'git-upload-pack') return undefined;
  if (refs !== undefined) return method === 'GET' ? { appName, service, step: 'advertise' } : undefined;
  return method === 'POST' ? { appName, service, step: 'serve' } : undefined;
}

/** The highest version in a client's `Git-Protocol`; '' when it names none, or anything else. */
export function protocolOf(header: string | null): string {
  const value = header ?? '';
  return /^version=[012](:version=[012])*$/.test(value) ? (value.split(':').sort().at(-1) ?? '') : '';
}

/** The token of `Basic` (as the password, whatever the user name) or `Bearer`. Undefined when there is none. */
export function readToken(header: string | null): string | undefined {
  const [, scheme = '', value = ''] = /^(Basic|Bearer) +([A-Za-z0-9+/=_.-]+)$/i.exec(header ?? '') ?? [];
  if (scheme.toLowerCase() === 'bearer') return value;
  if (scheme === '') return undefined;
  try {
    const text = atob(value);
    const token = text.slice(text.indexOf(':') + 1);
    return text.includes(':') && token !== '' ? token : undefined;
  } catch {
    return undefined;
  }
}
