/** Which of the versions that exist is the one that was asked for. */
import { compare, maxSatisfying, prerelease, valid, validRange } from 'semver';

/** Names of Node.js lines, as nvm has them; the value is the major version. */
const nodeLines: Readonly<Record<string, string>> = {
  argon: '4', boron: '6', carbon: '8', dubnium: '10', erbium: '12', fermium: '14', gallium: '16', hydrogen: '18', iron: '20', jod: '22', krypton: '24',
}; // biome-ignore format: a table

/** Node.js lines with long support have even numbers. */
const longSupport = '26 || 24 || 22 || 20 || 18';

/** Characters. A range takes longer to compare the longer it is. */
const longestRange = 256;

/**
 * The npm range that a request stands for: 'v22' → '22', 'lts/jod' → '22', 'latest' → '*'.
 * @returns undefined if it is no version
 */
export function toRange(request: string): string | undefined {
  if (request.length > longestRange) return undefined;
  const text = request.trim().replace(/^(?:node|go|deno|bun|ruby|php|elixir|v)[-@]?(?=\d)/, '');
  if (['latest', 'current', 'node', 'stable', ''].includes(text)) return '*';
  if (/^lts(\/\*|\/-\d+)?$/.test(text)) return longSupport.split(' || ')[0];
  const line = nodeLines[/^lts[/-](\w+)$/.exec(text)?.[1]?.toLowerCase() ?? ''];
  return line ?? (validRange(text) === null ? undefined : text);
}

/** The highest of `versions` in a range. Prereleases only if the range names one. */
export function chooseVersion(range: string, versions: readonly string[]): string | undefined {
  return maxSatisfying([...versions], range) ?? undefined;
}

/** The newest version of each of the newest major versions, newest first: for a message that names what there is. */
export function newestOfMajors(versions: readonly string[], majors: number): readonly string[] {
  const released = versions.filter((version) => valid(version) !== null && prerelease(version) === null).sort(compare);
  const newest = new Map(released.map((version) => [version.split('.')[0], version]));
  return [...newest.values()].reverse().slice(0, majors);
}

/** The npm range for a version specifier of Python: '>=3.11,<4', '==3.11.*', '~=3.10', '^3.11', '3.11'. Undefined if it is none. */
export function toPythonRange(request: string): string | undefined {
  if (request.length > longestRange) return undefined;
  const parts = request.split(',').map((part) => part.trim().replaceAll(/\s+/g, ''));
  const ranges = parts.map((part) => {
    const compatible = /^~=(\d+(?:\.\d+)*)\.(\d+)$/.exec(part);
    if (compatible !== null)
      return compatible[1]?.includes('.') ? `~${part.slice(2)}` : `>=${part.slice(2)} <${Number(compatible[1]) + 1}`;
    return part.startsWith('!=') ? '*' : part.replace(/^={2,3}/, '').replace(/\.\*$/, '');
  });
  return toRange(ranges.join(' '));
}

/** Of '17', '1.8', 'temurin-21', 'zulu-8.86' or 'openjdk-17.0.2'. Only the major version of a named distribution counts. Undefined if it is none. */
export function toJavaRange(request: string): string | undefined {
  if (request.length > longestRange) return undefined;
  const named = /^[a-z][a-z-]*-(\d+)/.exec(request)?.[1];
  return named ?? toRange(request.replace(/^1\.(?=\d)/, ''));
}

/** The npm range for the operators of RubyGems and Hex: '~> 3.1', '>= 3.0, < 4', '~> 1.14 or ~> 2.0'. Undefined if it is none. */
export function toPessimisticRange(request: string): string | undefined {
  if (request.length > longestRange) return undefined;
  const alternatives = request.split(/\s+or\s+|\|\|/).map((part) =>
    part
      .split(/,|\s+and\s+/)
      .map((each) => fromPessimistic(each.replaceAll(/\s+/g, '')))
      .join(' '),
  );
  return toRange(alternatives.join(' || '));
}

/** '~>3.1' allows all of 3 from 3.1 on, '~>3.1.2' all of 3.1 from 3.1.2 on. */
function fromPessimistic(part: string): string {
  const pessimistic = /^~>(\d+)(?:\.(\d+))?(\.\d+)?/.exec(part);
  if (pessimistic === null) return part.startsWith('!=') ? '*' : part.replace(/^==?/, '');
  const [, major, minor, patch] = pessimistic;
  return patch === undefined ? `>=${major}.${minor ?? '0'}.0 <${Number(major) + 1}` : `~${major}.${minor}${patch}`;
}

/** The npm range for a constraint of Composer: '^8.2', '~8.1', '>=8.1 <8.4', '8.2.*', '^7.4 | ^8.0'. Undefined if it is none. */
export function toComposerRange(request: string): string | undefined {
  if (request.length > longestRange) return undefined;
  const alternatives = request.split(/\|{1,2}/).map((part) =>
    part
      .trim()
      .split(/\s{0,9},\s{0,9}|\s+(?=[<>=^~!])/)
      .map((each) =>
        fromPessimistic(
          each
            .replace(/^~(?!>)/, '~>')
            .replaceAll(/\s+(?=\d)/g, '')
            .replace(/@\w+$/, ''),
        ),
      )
      .join(' '),
  );
  return toRange(alternatives.join(' || '));
}
