import { splitRoughly } from '#shared/platform/command-words.ts';
import type { SourceTree } from '../../plans/source-tree.ts';
import type { PackageJson } from './package-json.ts';

/**
 * Whether one of the commands that the app runs, or "start", is a program of a development dependency (`"start": "vite preview"`).
 * @returns the line for the log; undefined if development dependencies can go
 */
export async function usesDevelopmentTools(
  built: SourceTree,
  manifest: PackageJson,
  commands: readonly string[],
): Promise<string | undefined> {
  const scripts = (['prestart', 'start'] as const).map((name) => manifest.scripts?.[name] ?? '');
  const words = new Set(withScripts([...commands, ...scripts], manifest).flatMap(splitRoughly));
  for (const name of Object.keys(manifest.devDependencies ?? {})) {
    const used = [name, ...(await programsOf(built, name))].find((program) => words.has(program));
    if (used !== undefined) return `Keeping development dependencies: \`${used}\` is used to start the app`;
  }
  return undefined;
}

/** With the scripts of package.json that the commands call: `npm run serve`, `yarn serve`. */
function withScripts(commands: readonly string[], manifest: PackageJson): readonly string[] {
  const scripts = Object.entries(manifest.scripts ?? {});
  const called = scripts.filter(([name]) =>
    commands.some((command) => new RegExp(`\\b(npm|pnpm|yarn|bun)( run)? ${RegExp.escape(name)}(?![\\w:-])`).test(command)),
  );
  return [...commands, ...called.map(([, script]) => script)];
}

async function programsOf(built: SourceTree, name: string): Promise<readonly string[]> {
  const text = await built.readText(`node_modules/${name}/package.json`);
  if (text === undefined) return [];
  try {
    const { bin } = JSON.parse(text) as { bin?: string | Record<string, string> };
    return bin === undefined ? [] : typeof bin === 'string' ? [name.replace(/^@[^/]+\//, '')] : Object.keys(bin);
  } catch {
    return [];
  }
}
