/** The files `_redirects` and `_headers` of a static site, in the format of Netlify and Cloudflare Pages. */

export interface Redirect {
  /** An address as a header has it; with the statuses 200, 404 and 410 the path of a file. */
  readonly to: string;
  readonly status: number;
  /** Whether it applies even if a file has the address. */
  readonly forced: boolean;
}

export interface SiteRules {
  /** The first rule for a path. */
  findRedirect(path: string): Redirect | undefined;
  /** Headers of all rules for a path, later ones last. */
  findHeaders(path: string): readonly (readonly [name: string, value: string])[];
}

const longestRules = 2000;
/** Of a pattern. With two, comparing a path takes time by the square of its length. */
const mostStars = 2;
/** Headers that frame a response are the server's. */
const ownHeaders = /^(content-length|content-encoding|transfer-encoding|connection|date|content-range)$/i;

/** Parses the texts of `_headers` and `_redirects`. */
export function parseSiteRules(redirects: string, headers: string): SiteRules {
  const redirectRules = redirects.split('\n').slice(0, longestRules).flatMap(parseRedirect);
  const headerRules = parseHeaders(headers.split('\n').slice(0, longestRules));
  return {
    findRedirect(path) {
      for (const { pattern, to, status, forced } of redirectRules) {
        const match = pattern.exec(path);
        if (match !== null) return { to: fill(to, match.groups ?? {}, isAddress(status)), status, forced };
      }
      return undefined;
    },
    findHeaders: (path) => headerRules.filter(({ pattern }) => pattern?.test(path) === true).flatMap((rule) => rule.headers),
  };
}

/** `/old/* /new/:splat 301!`; conditions on countries, languages or query parameters are not evaluated, so such rules are left out. */
function parseRedirect(line: string): readonly (Redirect & { readonly pattern: RegExp })[] {
  const [from, ...words] = line
    .replace(/(^|\s)#.*/, '')
    .trim()
    .split(/\s+/);
  const statusWord = words.find((word) => /^\d{3}!?$/.test(word));
  const [to] = words;
  if (from === undefined || to === undefined || to === statusWord || !from.startsWith('/')) return [];
  if (words.length > (statusWord === undefined ? 1 : 2)) return [];
  const status = Number(statusWord?.slice(0, 3) ?? 301);
  if (![200, 301, 302, 303, 307, 308, 404, 410].includes(status)) return [];
  const pattern = toPattern(from);
  return pattern === undefined ? [] : [{ pattern, to, status, forced: statusWord?.endsWith('!') === true }];
}

interface HeaderRule {
  /** Undefined for one that is left out. */
  readonly pattern: RegExp | undefined;
  readonly headers: (readonly [name: string, value: string])[];
}

function parseHeaders(lines: readonly string[]): readonly HeaderRule[] {
  const rules: HeaderRule[] = [];
  for (const line of lines) {
    const text = line.trim();
    if (text === '' || text.startsWith('#')) continue;
    if (text.startsWith('/')) {
      rules.push({ pattern: toPattern(text), headers: [] });
      continue;
    }
    const [, name, value] = /^([\w-]+)\s*:\s*([\x20-\x7e]*)$/.exec(text) ?? [];
    if (name !== undefined && value !== undefined && !ownHeaders.test(name)) rules.at(-1)?.headers.push([name, value]);
  }
  return rules;
}

/** `*` matches anything, at the end also the path without it; `:name` matches one segment. Undefined for a path that is none. */
function toPattern(path: string): RegExp | undefined {
  if ((path.match(/\*/g) ?? []).length > mostStars) return undefined;
  const source = path
    .replace(/\/$/, '')
    .replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&')
    .replaceAll(/:([A-Za-z]\w*)/g, '(?<$1>[^/]+)')
    .replace(/\/\*$/, '(?:/(?<splat>.*))?')
    .replaceAll(/(?<!\.)\*(?!\))/g, '.*');
  try {
    return new RegExp(`^${source}/?$`, 's');
  } catch {
    return undefined; // the same name twice
  }
}

/** Whether a redirect with this status sends the browser to an address. */
export function isAddress(status: number): boolean {
  return status !== 200 && status < 400;
}

function fill(to: string, values: Readonly<Record<string, string | undefined>>, encoded: boolean): string {
  const encode = (value: string): string => (encoded ? value.split('/').map(encodeURIComponent).join('/') : value);
  const filled = to.replaceAll(/:([A-Za-z]\w*)/g, (word, name: string) => (name in values ? encode(values[name] ?? '') : word));
  return encoded ? filled.replaceAll(/[^\x21-\x7e]+/g, encodeURI) : filled;
}
