/** Versions of languages and tools that an app asks for in files that are not its language's own manifest. */
import { parse } from 'smol-toml';
import type { VersionRequest } from '../../toolchains/toolchain.ts';
import type { AppOverrides } from './paas-file.ts';
import type { SourceTree } from './source-tree.ts';

/** By tool: 'node', 'python', 'go', 'bun', 'pnpm' … */
export type VersionPins = ReadonlyMap<string, VersionRequest>;

const aliases: Readonly<Record<string, string>> = {
  nodejs: 'node',
  golang: 'go',
  'dotnet-core': 'dotnet',
  'dotnet-sdk': 'dotnet',
};

/** Files with nothing but a version. */
const versionFiles: readonly (readonly [file: string, tool: string])[] = [
  ['.nvmrc', 'node'],
  ['.node-version', 'node'],
  ['.python-version', 'python'],
  ['.ruby-version', 'ruby'],
  ['.php-version', 'php'],
  ['.elixir-version', 'elixir'],
  ['.go-version', 'go'],
  ['.java-version', 'java'],
  ['.bun-version', 'bun'],
  ['.deno-version', 'deno'],
  ['.dvmrc', 'deno'],
];

const miseFiles = [
  'mise.toml',
  '.mise.toml',
  'mise/config.toml',
  '.mise/config.toml',
  '.config/mise.toml',
  '.config/mise/config.toml',
];

/**
 * In this order of precedence: the app's variables, paas.yml, railpack.json, mise's configuration, .tool-versions, files of version managers. Only versions
 * are read of mise's configuration: its hooks, tasks and scripts are the app's code, which runs in the sandbox alone.
 * @param env the app's variables: `RAILPACK_NODE_VERSION`, `NIXPACKS_NODE_VERSION`
 */
export async function readVersionPins(
  source: SourceTree,
  env: Readonly<Record<string, string>>,
  { versions, packages }: Pick<AppOverrides, 'versions' | 'packages'>,
): Promise<VersionPins> {
  const pins = new Map<string, VersionRequest>();
  const pin = (tool: string, version: string | undefined, from: string): void => {
    const plain = tool.replace(/^core:/, '');
    const name = aliases[plain] ?? plain;
    if (version === undefined || version === '' || version === 'system' || pins.has(name)) return;
    pins.set(name, { version, source: from });
  };
  for (const [name, value] of Object.entries(env)) {
    const tool = /^(?:RAILPACK|NIXPACKS)_([A-Z]+)_VERSION$/.exec(name)?.[1];
    if (tool !== undefined) pin(tool.toLowerCase(), value.trim(), name);
  }
  for (const [tool, version] of Object.entries(versions)) pin(tool, version, 'paas.yml');
  for (const [tool, version] of Object.entries(packages)) pin(tool, version, 'railpack.json');
  for (const file of miseFiles) {
    const text = await source.readText(file);
    for (const [tool, version] of text === undefined ? [] : miseTools(text)) pin(tool, version, file);
  }
  for (const line of lines(await source.readText('.tool-versions'))) {
    const [tool = '', version] = line.split(/\s+/);
    pin(tool, version, '.tool-versions');
  }
  for (const [file, tool] of versionFiles) pin(tool, lines(await source.readText(file))[0], file);
  const python = /^python-(\S+)$/.exec(lines(await source.readText('runtime.txt'))[0] ?? '')?.[1];
  pin('python', python, 'runtime.txt');
  return pins;
}

function lines(text: string | undefined): readonly string[] {
  const cleaned = (text ?? '').split('\n').map((line) => line.replace(/#.*/, '').trim());
  return cleaned.filter((line) => line !== '');
}

/** Tools and versions of a mise.toml; none if it is not valid, which mise itself reports. */
function miseTools(text: string): readonly (readonly [string, string])[] {
  try {
    const { tools } = parse(text);
    if (typeof tools !== 'object' || tools === null) return [];
    return Object.entries(tools).flatMap(([tool, value]) => {
      const version = versionOf(value);
      return version === undefined ? [] : [[tool, version] as const];
    });
  } catch {
    return [];
  }
}

/** `"22"`, `["22", "20"]` or `{ version = "22" }`. */
function versionOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return versionOf(value[0]);
  if (typeof value === 'object' && value !== null && 'version' in value) return versionOf(value.version);
  return undefined;
}
