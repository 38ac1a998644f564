/** Tools that the platform installs itself, and where builds and apps see them. */
import { debianToolNames } from './debian/debian-tools.ts';
import { npmPackages } from './sources/npm-source.ts';

export const storedToolNames = [
  'node',
  'npm',
  'pnpm',
  'yarn',
  'yarn-berry',
  'corepack',
  'bun',
  'deno',
  'go',
  'uv',
  'python',
  'rust',
  ...debianToolNames,
] as const;
export type StoredToolName = (typeof storedToolNames)[number];

/** `version` is exact: '22.19.0'. */
export interface StoredTool {
  readonly name: StoredToolName;
  readonly version: string;
}

/** Where a stored tool is seen inside the sandbox. Those of Debian are seen in the places that their packages name. */
export function targetOf({ name, version }: StoredTool): string {
  return `/opt/paas/tools/${name}/${version}`;
}

/** Directory of its programs inside the sandbox. */
export function programsOf(tool: StoredTool): string {
  return `${targetOf(tool)}/${npmPackages[tool.name]?.programs ?? 'bin'}`;
}
