/**
 * Debian's packages, fetched by the apt of the host with lists and caches of its own: nothing is installed on the host. apt proves the
 * signature of the archive and the hash of each package.
 */
import { execFile } from 'node:child_process';
import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { millisecondsPerDay, millisecondsPerMinute } from '#shared/durations.ts';
import { ifMissing } from '#shared/files/if-missing.ts';

export interface DebianArchive {
  /** Versions by package; without those that the release does not have. @throws Error if the archive cannot be reached */
  readCandidates(packages: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** What `download` would fetch. */
  measure(packages: readonly string[]): Promise<{ packages: number; bytes: number }>;
  /** Fetches packages with all that they depend on, and a minimal system. @returns paths of .deb files */
  download(packages: readonly string[], directory: string): Promise<readonly string[]>;
}

type Env = Readonly<Record<string, string | undefined>>;

const run = promisify(execFile);
const longestMilliseconds = 10 * millisecondsPerMinute;
const listsLastMilliseconds = millisecondsPerDay;
const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg';

/**
 * @param directory for apt's lists, absolute
 * @param codename of the release
 * @param mirrors where the host gets its own packages from
 */
export function openDebianArchive(directory: string, codename: string, mirrors: DebianMirrors, env: Env): DebianArchive {
  const sources = `${directory}/sources.list`;
  const apt = async (
    program: 'apt-get' | 'apt-cache',
    args: readonly string[],
    more: readonly string[] = [],
  ): Promise<string> => {
    const settings = [
      `Dir::Etc::sourcelist=${sources}`,
      'Dir::Etc::sourceparts=-',
      'Dir::Etc::preferences=-',
      'Dir::Etc::preferencesparts=-',
      `Dir::State=${directory}/state`,
      `Dir::State::lists=${directory}/lists`,
      // Empty: nothing counts as installed, so all that a package depends on is fetched.
      `Dir::State::status=${directory}/status`,
      `Dir::Cache=${directory}/cache`,
      'Acquire::Languages=none',
      'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false',
      'APT::Sandbox::User=',
      ...more,
    ];
    const { stdout } = await run(program, [...settings.flatMap((setting) => ['-o', setting]), ...args], {
      env: { ...env, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' } as NodeJS.ProcessEnv,
      timeout: longestMilliseconds,
      maxBuffer: 64 * 1024 * 1024,
    });
    return stdout;
  };
  const update = async (): Promise<void> => {
    for (const name of ['state', 'lists/partial', 'cache/archives/partial'])
      await mkdir(`${directory}/${name}`, { recursive: true });
    await writeFile(`${directory}/status`, '');
    await writeFile(sources, sourcesOf(codename, mirrors));
    try {
      await apt('apt-get', ['update', '-qq']);
    } catch (error) {
      // Old releases lack some of the suites, which counts as a failure although the others have been read.
      const lists = await readdir(`${directory}/lists`);
      if (lists.some((name) => /_Packages($|\.)/.test(name))) return;
      await rm(sources);
      throw error;
    }
  };
  return {
    async readCandidates(packages) {
      if (!(await areListsFresh(sources))) await update();
      const said = await apt('apt-cache', ['policy', ...packages]);
      const candidates = [...said.matchAll(/^(\S+):\n(?: {2}Installed: .*\n)? {2}Candidate: (\S+)$/gm)];
      return new Map(candidates.flatMap(([, name = '', version = '(none)']) => (version === '(none)' ? [] : [[name, version]])));
    },
    async measure(packages) {
      return sumDownloads(await apt('apt-get', ['install', '--print-uris', ...installed(packages)]));
    },
    async download(packages, into) {
      await mkdir(`${into}/partial`, { recursive: true });
      await apt('apt-get', ['install', '--download-only', ...installed(packages)], [`Dir::Cache::archives=${into}`]);
      const names = (await readdir(into)).filter((name) => name.endsWith('.deb'));
      return names.sort().map((name) => `${into}/${name}`);
    },
  };
}

const installed = (packages: readonly string[]) => ['-qq', '-y', '--no-install-recommends', '?essential', ...packages];

/** @param printed a line for each package: address in quotes, name of the file, bytes, hash */
export function sumDownloads(printed: string): { packages: number; bytes: number } {
  const sizes = [...printed.matchAll(/^'[^'\n]+' \S+ (\d+) /gm)].map(([, bytes]) => Number(bytes));
  return { packages: sizes.length, bytes: sizes.reduce((sum, bytes) => sum + bytes, 0) };
}

/** @param sources written whenever the lists are read */
async function areListsFresh(sources: string): Promise<boolean> {
  const facts = await stat(sources).catch(ifMissing(undefined));
  return facts !== undefined && facts.mtimeMs + listsLastMilliseconds > Date.now();
}

/** Addresses of the archive, by what the name of a suite has after that of the release: '', '-security', '-updates'. */
export type DebianMirrors = ReadonlyMap<string, string>;

/** The mirrors that a host with Debian gets its own packages from; empty on others. */
export async function readDebianMirrors(env: Env): Promise<DebianMirrors> {
  const format = '$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)';
  const options = { env: env as NodeJS.ProcessEnv, timeout: millisecondsPerMinute };
  const { stdout } = await run('apt-get', ['indextargets', '--format', format, 'Identifier: Packages'], options).catch(() => ({
    stdout: '',
  }));
  return parseMirrors(stdout);
}

/** @param targets a line per list of packages: address, suite, component and origin. The origin is known only after `apt-get update` */
export function parseMirrors(targets: string): DebianMirrors {
  const mirrors = new Map<string, string>();
  for (const line of targets.split('\n')) {
    const [address, suite = '', component, origin = ''] = line.split('|');
    const kind = /^[a-z]+(-security|-updates)?$/.exec(suite);
    if (address === undefined || kind === null || component !== 'main' || !['Debian', '', '$(ORIGIN)'].includes(origin)) continue;
    if (!mirrors.has(kind[1] ?? '')) mirrors.set(kind[1] ?? '', address);
  }
  return mirrors;
}

function sourcesOf(codename: string, mirrors: DebianMirrors): string {
  return [...mirrors].map(([kind, address]) => `deb [signed-by=${keyring}] ${address} ${codename}${kind} main\n`).join('');
}
