import type { StoredToolName } from '../../../toolchains/stored-tools.ts';
import type { VersionRequest } from '../../../toolchains/toolchain.ts';
import type { SourceTree } from '../../plans/source-tree.ts';
import type { VersionPins } from '../../plans/version-pins.ts';
import { declaredManager, findToolRequest } from './node-versions.ts';
import type { PackageJson } from './package-json.ts';

export type ManagerName = 'npm' | 'pnpm' | 'yarn' | 'bun';

/** The package manager of an app, and the version of it that the app asks for or that its lockfile needs. */
export interface PackageManager {
  readonly name: ManagerName;
  /** In the tool store. Yarn from 2 on is another package. */
  readonly tool: StoredToolName;
  /** Undefined: the npm that Node.js comes with. */
  readonly request: VersionRequest | undefined;
  readonly lockfile: Lockfile | undefined;
}

export interface Lockfile {
  readonly name: string;
  readonly text: string;
}

const lockfiles: readonly (readonly [file: string, manager: ManagerName])[] = [
  ['pnpm-lock.yaml', 'pnpm'],
  ['bun.lock', 'bun'],
  ['bun.lockb', 'bun'],
  ['yarn.lock', 'yarn'],
  ['npm-shrinkwrap.json', 'npm'],
  ['package-lock.json', 'npm'],
];

/** "packageManager" decides, then the lockfile, then "engines". */
export async function findPackageManager(source: SourceTree, manifest: PackageJson, pins: VersionPins): Promise<PackageManager> {
  const declared = declaredManager(manifest)?.name ?? manifest.devEngines?.packageManager?.name;
  const found = await findLockfiles(source);
  const asked = (['pnpm', 'yarn', 'bun'] as const).find((name) => name === declared || manifest.volta?.[name] !== undefined);
  const engine = (['pnpm', 'bun', 'yarn'] as const).find((name) => manifest.engines?.[name] !== undefined);
  const berry = (await source.hasFile('.yarnrc.yml')) ? 'yarn' : undefined;
  const name = declared === 'npm' ? 'npm' : (asked ?? found[0]?.manager ?? berry ?? engine ?? 'npm');
  const lockfile = found.find(({ manager }) => manager === name);
  const request = findToolRequest(name, manifest, pins) ?? (await lockfileRequest(name, lockfile, source));
  const isBerry = name === 'yarn' && !/^[v^~>=\s]*1(\.|$)/.test(request?.version ?? '');
  return { name, tool: isBerry ? 'yarn-berry' : name, request, lockfile };
}

async function findLockfiles(source: SourceTree): Promise<readonly (Lockfile & { readonly manager: ManagerName })[]> {
  const found = lockfiles.map(async ([name, manager]) => {
    const bytes = await source.readBytes(name, 32 * 1024 * 1024);
    return bytes === undefined ? [] : [{ name, manager, text: new TextDecoder('latin1').decode(bytes) }];
  });
  return (await Promise.all(found)).flat();
}

/** The release of a package manager that wrote a lockfile of this format. */
async function lockfileRequest(
  name: ManagerName,
  lockfile: Lockfile | undefined,
  tree: SourceTree,
): Promise<VersionRequest | undefined> {
  const source = lockfile?.name ?? 'package.json';
  switch (name) {
    case 'npm':
      return undefined;
    case 'bun':
      return { version: 'latest', source };
    case 'pnpm': {
      const format = Number(/^lockfileVersion: '?(\d+)/m.exec(lockfile?.text ?? '')?.[1] ?? 9);
      const newest = lockfile === undefined || (await hasSettingsOfPnpm10(tree)) ? '10' : '9';
      return { version: format >= 9 ? newest : format >= 6 ? '8' : '7', source };
    }
    case 'yarn': {
      const format = Number(
        /^__metadata:\s+version: (\d+)/m.exec(lockfile?.text ?? '')?.[1] ?? ((await tree.hasFile('.yarnrc.yml')) ? 8 : 0),
      );
      return { version: format === 0 ? '1' : format <= 4 ? '2' : format <= 6 ? '3' : '4', source };
    }
  }
}

/** pnpm 9 and 10 write the same lockfile. Only 10 has settings in pnpm-workspace.yaml. */
async function hasSettingsOfPnpm10(tree: SourceTree): Promise<boolean> {
  const text = (await tree.readText('pnpm-workspace.yaml')) ?? '';
  const keys = text.split('\n').flatMap((line) => /^([A-Za-z]{1,80}):/.exec(line)?.[1] ?? []);
  return keys.some((key) => !['packages', 'catalog', 'catalogs'].includes(key));
}
