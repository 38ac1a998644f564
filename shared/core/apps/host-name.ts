import type { Addresses } from '#shared/core/addresses.ts';
import { AppError } from '#shared/errors.ts';

const labelPattern = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** What the URL parser would understand otherwise than as a part of a name, or silently leave out. */
const notOfNames = /[/\\:@?#%[\]\s\p{Cc}\p{Cf}]/u;

/**
 * A host name as it stands in the DNS: lower case, in ASCII (IDNA), without a dot at its end.
 * @throws AppError `validation_failed` for what is no such name, and for names that are the platform's own
 */
export function parseHost(text: string, addresses: Pick<Addresses, 'appsDomain' | 'baseHost'>): string {
  if (text.includes('*')) throw refuse('must be one host: wildcards are not supported');
  const host = normalizeHost(text);
  const labels = host?.split('.') ?? [];
  const isName =
    host !== undefined &&
    host.length <= 253 &&
    labels.length >= 2 &&
    labels.every((label) => labelPattern.test(label)) &&
    // All digits at the end is an address, or will be taken for one.
    !/^\d+$/.test(labels.at(-1) ?? '');
  if (!isName) throw refuse('must be a host name as www.example.com');
  if (isOrIsBelow(host, addresses.appsDomain)) {
    throw refuse(`is below ${addresses.appsDomain}, where apps are by their own name`);
  }
  // Everything local is below localhost, which nobody owns.
  if (addresses.baseHost !== 'localhost' && isOrIsBelow(host, addresses.baseHost)) {
    throw refuse(`is the platform's own (${addresses.baseHost})`);
  }
  return host;
}

/** Names that the public DNS will never have (RFC 2606, 6761, 6762, 8375, ICANN's `internal`): nobody can prove to own them. */
const neverPublic = ['localhost', 'test', 'example', 'invalid', 'local', 'internal', 'home.arpa'];

/** Whether the public DNS cannot have the host: `localhost`, `.test` and their like. */
export function isNeverPublic(host: string): boolean {
  return neverPublic.some((suffix) => isOrIsBelow(host, suffix));
}

function isOrIsBelow(host: string, parent: string): boolean {
  return host === parent || host.endsWith(`.${parent}`);
}

/** As the DNS would have it; undefined for what is no name at all. */
export function normalizeHost(text: string): string | undefined {
  const name = text.trim().replace(/\.$/, '');
  if (name === '' || name.length > 253 || notOfNames.test(name)) return undefined;
  return URL.parse(`http://${name}/`)?.hostname;
}

function refuse(problem: string): AppError {
  return new AppError('validation_failed', `The host ${problem}.`, { details: [{ path: 'host', message: problem }] });
}
