import JSON5 from 'json5';
import { z } from 'zod';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import type { SourceTree } from '../../plans/source-tree.ts';

const strings = z.record(z.string(), z.string());
const tool = z.object({ name: z.string(), version: z.string().optional() });
const engine = z.union([tool, z.array(tool)]).transform((value) => (Array.isArray(value) ? value[0] : value));

const schema = z.object({
  main: z.string().optional(),
  module: z.string().optional(),
  scripts: strings.optional(),
  dependencies: strings.optional(),
  devDependencies: strings.optional(),
  optionalDependencies: strings.optional(),
  engines: z.record(z.string(), z.unknown()).optional(),
  volta: z.record(z.string(), z.unknown()).optional(),
  devEngines: z.object({ runtime: engine.optional(), packageManager: engine.optional() }).optional(),
  packageManager: z.string().optional(),
  workspaces: z.union([z.array(z.string()), z.object({ packages: z.array(z.string()).optional() })]).optional(),
});

/** What the platform reads of a package.json. */
export type PackageJson = z.infer<typeof schema>;

/** pnpm reads package.json5 as well. In the order in which they are looked for. */
export const manifestNames = ['package.json', 'package.json5'] as const;

/** Undefined where there is none. @throws BuildFailure that says what is wrong with it */
export async function readPackageJson(source: SourceTree, directory = ''): Promise<PackageJson | undefined> {
  for (const name of manifestNames) {
    const path = directory === '' ? name : `${directory}/${name}`;
    const text = await source.readText(path);
    if (text !== undefined) return parsePackageJson(text, path);
  }
  return undefined;
}

/** @throws BuildFailure that says what is wrong with it */
export function parsePackageJson(text: string, path = 'package.json'): PackageJson {
  let json: unknown;
  try {
    const plain = text.replace(/^\uFEFF/, '');
    json = path.endsWith('5') ? JSON5.parse(plain) : JSON.parse(plain);
  } catch (error) {
    throw new BuildFailure(`${path} is not valid JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new BuildFailure(`${path}: ${issue?.path.join('.') || 'the whole'} ${issue?.message ?? 'is not valid'}.`);
}

/** Of all groups. */
export function allDependencies(manifest: PackageJson): Readonly<Record<string, string>> {
  return { ...manifest.optionalDependencies, ...manifest.devDependencies, ...manifest.dependencies };
}

/** Patterns of the directories of workspace packages. */
export function workspacePatterns(manifest: PackageJson): readonly string[] {
  const { workspaces } = manifest;
  return workspaces === undefined ? [] : Array.isArray(workspaces) ? workspaces : (workspaces.packages ?? []);
}
