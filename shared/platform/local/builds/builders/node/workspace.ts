import { parse } from 'yaml';
import { expandDirectories } from '../../plans/expand-directories.ts';
import type { SourceTree } from '../../plans/source-tree.ts';
import { type PackageJson, readPackageJson, workspacePatterns } from './package-json.ts';

/** The packages of an app: its own, and those of its workspace. */
export interface Workspace {
  /** By directory, relative to the app; its own is ''. */
  readonly packages: ReadonlyMap<string, PackageJson>;
}

/** Reads the manifests of all packages of the workspace. */
export async function readWorkspace(source: SourceTree, manifest: PackageJson): Promise<Workspace> {
  const patterns = [...workspacePatterns(manifest), ...pnpmPatterns(await source.readText('pnpm-workspace.yaml'))];
  const packages = new Map<string, PackageJson>([['', manifest]]);
  const excluded = new Set<string>();
  for (const pattern of patterns.filter((text) => text.startsWith('!')))
    for (const directory of await expandDirectories(source, pattern.slice(1))) excluded.add(directory);
  for (const pattern of patterns.filter((text) => !text.startsWith('!'))) {
    for (const directory of await expandDirectories(source, pattern)) {
      const found = excluded.has(directory) ? undefined : await readPackageJson(source, directory);
      if (found !== undefined) packages.set(directory, found);
    }
  }
  return { packages: new Map([...packages].sort(([one], [other]) => (one < other ? -1 : 1))) };
}

function pnpmPatterns(text: string | undefined): readonly string[] {
  const settings = (text === undefined ? undefined : parse(text)) as { packages?: unknown } | null | undefined;
  return Array.isArray(settings?.packages) ? settings.packages.filter((pattern) => typeof pattern === 'string') : [];
}
