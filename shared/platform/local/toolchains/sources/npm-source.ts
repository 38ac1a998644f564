import { symlink } from 'node:fs/promises';
import { z } from 'zod';
import { runProgram, type SourceParts, type ToolSource } from './tool-source.ts';

const architecture = process.arch;
const bunArchitecture = architecture === 'arm64' ? 'aarch64' : architecture;

export interface NpmPackage {
  readonly package: string;
  /** Directory of its programs, in the directory that npm installs into. */
  readonly programs: string;
  /** Further names of its programs. */
  readonly links?: Readonly<Record<string, string>>;
  /** Whether the program for this machine is among its optional dependencies. */
  readonly optional?: boolean;
  /** Another package that has some versions. */
  readonly further?: { readonly package: string; readonly versions: RegExp };
}

const linked = (name: string): NpmPackage => ({ package: name, programs: 'node_modules/.bin' });

/** Tools that npm installs. Packages with a binary are named directly: no script of a package runs. */
export const npmPackages: Readonly<Record<string, NpmPackage>> = {
  node: { package: `node-linux-${architecture}`, programs: `node_modules/node-linux-${architecture}/bin` },
  npm: linked('npm'),
  pnpm: { ...linked('pnpm'), optional: true },
  yarn: linked('yarn'),
  // The last release of Yarn 2 was published under Yarn 1's name alone.
  'yarn-berry': { ...linked('@yarnpkg/cli-dist'), further: { package: 'yarn', versions: /^2\.\d+\.\d+$/ } },
  corepack: linked('corepack'),
  bun: {
    package: `@oven/bun-linux-${bunArchitecture}`,
    programs: `node_modules/@oven/bun-linux-${bunArchitecture}/bin`,
    links: { bunx: 'bun' },
  },
  deno: {
    package: `@deno/linux-${architecture}-glibc`,
    programs: `node_modules/@deno/linux-${architecture}-glibc`,
  },
};

/** The npm registry, whose integrity hashes npm checks. */
export function createNpmSource(parts: SourceParts, found: NpmPackage): ToolSource {
  const npm = (cwd: string, args: readonly string[]): Promise<string> =>
    runProgram({
      program: parts.node,
      args: [`${parts.npm}/bin/npm-cli.js`, ...args],
      cwd,
      env: { ...parts.hostEnv, npm_config_update_notifier: 'false' },
    });
  const list = async (name: string): Promise<readonly string[]> =>
    z.array(z.string()).parse(JSON.parse(await npm('/', ['view', name, 'versions', '--json'])));
  const listFurther = async ({ further }: NpmPackage): Promise<readonly string[]> =>
    further === undefined ? [] : (await list(further.package)).filter((version) => further.versions.test(version));
  return {
    async listVersions() {
      return (await Promise.all([list(found.package), listFurther(found)])).flat();
    },
    async install(version, directory) {
      const published = found.further !== undefined && (await listFurther(found)).includes(version);
      const optional = found.optional === true ? '--include=optional' : '--omit=optional';
      const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-save', optional, '--omit=dev'];
      await npm(directory, [
        'install',
        '--prefix',
        directory,
        ...flags,
        `${published ? found.further.package : found.package}@${version}`,
      ]);
      for (const [name, program] of Object.entries(found.links ?? {}))
        await symlink(program, `${directory}/${found.programs}/${name}`);
      return directory;
    },
  };
}
