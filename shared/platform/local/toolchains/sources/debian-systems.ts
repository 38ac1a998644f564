/** Systems of Debian's packages with those that an app asks for, in place of the host's /usr. */
import { createHash } from 'node:crypto';
import { access, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { millisecondsPerHour } from '#shared/durations.ts';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import { openDebianArchive, readDebianMirrors } from '../debian/debian-archive.ts';
import { unpackDebianRoot } from '../debian/debian-roots.ts';
import { type DebianToolName, systemPackages } from '../debian/debian-tools.ts';
import { type DebianSourceParts, findCandidates, inTurn } from './debian-source.ts';
import type { ToolSource } from './tool-source.ts';

/** A toolchain of Debian's packages, which a system is to have as well. */
export interface SystemBase {
  readonly name: DebianToolName;
  readonly version: string;
}

export interface DebianSystems {
  /**
   * Plans a system. The tool store installs it by its version, which stands for the packages.
   * @param packages names in Debian
   * @param base without one, the system is of the host's release
   * @throws BuildFailure that names a package which the release does not have
   */
  planSystem(packages: readonly string[], base: SystemBase | undefined): Promise<Planned>;
}

interface Planned {
  readonly version: string;
  readonly codename: string;
}

/** What is in a system, by its version. */
interface Recipe {
  readonly codename: string;
  readonly packages: readonly string[];
}

const mostPlanned = 1000;
/** Of all packages that the wanted ones need: several times as much when it is unpacked. */
const mostDownloadedBytes = 768 * 1024 * 1024;
const mostNamed = 200;
const packageName = /^[a-z0-9][a-z0-9+.-]{1,100}$/;

export function createDebianSystems(parts: DebianSourceParts): DebianSystems & { readonly source: ToolSource } {
  const { directory, hostEnv } = parts;
  const fileOf = (version: string): string => `${directory}/.debian/systems/${version}.json`;
  const open = async (codename: string) =>
    openDebianArchive(`${directory}/.debian/${codename}`, codename, await readDebianMirrors(hostEnv), hostEnv);
  const planned = new Map<string, { readonly until: number; readonly plan: Planned }>();
  const plan = async (wanted: readonly string[], base: SystemBase | undefined): Promise<Planned> => {
    if (wanted.length > mostNamed) throw new BuildFailure(`An app can ask for at most ${mostNamed} packages of Debian.`);
    const bad = wanted.find((name) => !packageName.test(name));
    if (bad !== undefined) throw new BuildFailure(`"${bad.slice(0, 100)}" is not the name of a Debian package.`);
    const { codename, packages } = await findBase(parts, base);
    const archive = await open(codename);
    const found = await inTurn(`${directory}/.debian/${codename}`, () =>
      archive.readCandidates([...new Set([...packages, ...wanted])]),
    ).catch(() => undefined);
    if (found === undefined)
      throw new BuildFailure(
        `The app asks for packages of Debian (${wanted.slice(0, 5).join(', ')}), which this platform cannot reach. Try again.`,
      );
    const missing = wanted.filter((name) => !found.has(name));
    if (missing.length > 0)
      throw new BuildFailure(
        `Debian (${codename}) has no package ${missing.slice(0, 5).join(', ')}. Check its name at https://packages.debian.org/${codename}/`,
      );
    const recipe: Recipe = { codename, packages: [...found.keys()].sort() };
    // Another version of a package makes another system, so updates arrive with the next build.
    const facts = recipe.packages.map((name) => `${name} ${found.get(name)}`);
    const hash = createHash('sha256')
      .update(JSON.stringify([codename, facts]))
      .digest('hex')
      .slice(0, 16);
    const version = `1.0.0+${hash}`;
    await mkdir(`${directory}/.debian/systems`, { recursive: true });
    await writeFile(fileOf(version), JSON.stringify(recipe));
    await removeOldRecipes();
    return { version, codename };
  };
  /** Of systems that are not installed. */
  const removeOldRecipes = async (): Promise<void> => {
    const versions = (await readdir(`${directory}/.debian/systems`)).map((name) => name.replace(/\.json$/, ''));
    if (versions.length <= mostPlanned) return;
    for (const version of versions) {
      const { mtimeMs } = await stat(fileOf(version)).catch(() => ({ mtimeMs: Date.now() }));
      const isOld = mtimeMs + 2 * millisecondsPerHour < Date.now();
      if (isOld && !(await isThere(`${directory}/debian-system/${version}`))) await rm(fileOf(version), { force: true });
    }
  };
  return {
    async planSystem(wanted, base) {
      // apt takes a second or two to answer.
      const key = JSON.stringify([wanted, base]);
      const known = planned.get(key);
      if (known !== undefined && known.until > Date.now()) return known.plan;
      const made = await plan(wanted, base);
      if (planned.size >= mostPlanned) planned.clear();
      planned.set(key, { until: Date.now() + millisecondsPerHour, plan: made });
      return made;
    },
    source: {
      listVersions: async () => [],
      async install(version, into) {
        const { codename, packages } = JSON.parse(await readFile(fileOf(version), 'utf8')) as Recipe;
        const archive = await open(codename);
        const { packages: count, bytes } = await archive.measure(packages);
        if (bytes > mostDownloadedBytes)
          throw new BuildFailure(
            `The packages of Debian that the app asks for need ${count} packages of ${mebibytes(bytes)} MiB in all. At most ${mebibytes(mostDownloadedBytes)} MiB are possible.`,
          );
        const archives = `${into}/archives`;
        await unpackDebianRoot(await archive.download(packages, archives), into);
        await rm(archives, { recursive: true });
        return into;
      },
    },
  };
}

const mebibytes = (bytes: number): number => Math.ceil(bytes / 1024 / 1024);

const isThere = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

async function findBase(parts: DebianSourceParts, base: SystemBase | undefined): Promise<Recipe> {
  if (base === undefined) return { codename: await readHostRelease(), packages: systemPackages };
  const found = (await findCandidates(parts, base.name)).find(({ version }) => version === base.version);
  if (found === undefined) throw new BuildFailure(`No release of Debian has ${base.name} ${base.version} any more. Push again.`);
  return found;
}

/** Programs of the host's /usr that builds use, such as Python, are those of this release. */
async function readHostRelease(): Promise<string> {
  const text = await readFile('/etc/os-release', 'utf8').catch(() => '');
  return (/^ID="?debian"?$/m.test(text) ? /^VERSION_CODENAME="?([a-z]+)"?$/m.exec(text)?.[1] : undefined) ?? 'trixie';
}
