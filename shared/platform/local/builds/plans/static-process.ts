import { partTargets, type ToolchainMount } from '../../toolchains/toolchain-mounts.ts';

/** What `staticProcess` runs. */
export const staticServerMounts: readonly ToolchainMount[] = [
  { kind: 'platform', name: 'node' },
  { kind: 'platform', name: 'static-server' },
];

const program = `${partTargets.node} ${partTargets['static-server']}/main.ts`;

/**
 * Process types that serve the files of a directory.
 * @param directory relative to the app
 * @param fallback whether index.html answers where no file does, for apps that route in the browser
 */
export function staticProcess(directory: string, { fallback }: { fallback: boolean }): Readonly<Record<string, string>> {
  const root = directory === '.' || directory === '' ? '/app' : `/app/${directory}`;
  const quoted = `'${root.replaceAll("'", `'\\''`)}'`;
  return { web: [program, quoted, ...(fallback ? ['--fallback'] : [])].join(' ') };
}

/** Whether all of an app's processes serve files, and run none of its code. */
export function areStatic(processes: Readonly<Record<string, string>>): boolean {
  const commands = Object.values(processes);
  return commands.length > 0 && commands.every((command) => command.startsWith(`${program} `));
}
