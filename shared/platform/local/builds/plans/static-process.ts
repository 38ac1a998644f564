import { partTargets, type ToolchainMount } from '../../toolchains/toolchain-mounts.ts';

/** What `staticProcess` runs. */
export const staticServerMounts: readonly ToolchainMount[] = [
  { kind: 'platform', name: 'node' },
  { kind: 'platform', name: 'static-server' },
];

/**
 * Process types that serve the files of a directory.
 * @param directory relative to the app
 * @param fallback whether index.html answers where no file does, for apps that route in the browser
 */
export function staticProcess(directory: string, { fallback }: { fallback: boolean }): Readonly<Record<string, string>> {
  const root = directory === '.' || directory === '' ? '/app' : `/app/${directory}`;
  const quoted = `'${root.replaceAll("'", `'\\''`)}'`;
  const words = [partTargets.node, `${partTargets['static-server']}/main.ts`, quoted, ...(fallback ? ['--fallback'] : [])];
  return { web: words.join(' ') };
}
