import { readdir } from 'node:fs/promises';
import { z } from 'zod';
import { runProgram, type SourceParts, type ToolSource } from './tool-source.ts';

const listSchema = z.array(z.looseObject({ version: z.string(), implementation: z.string(), variant: z.string().optional() }));

/**
 * Builds of CPython that uv knows, with their hashes, which it checks. They are downloaded from GitHub, or from the mirror that the
 * operator sets by UV_PYTHON_INSTALL_MIRROR.
 * @param findUv the program; installs it if need be
 */
export function createUvSource({ hostEnv }: SourceParts, findUv: () => Promise<string>): ToolSource {
  const uv = async (cwd: string, args: readonly string[]): Promise<string> =>
    runProgram({
      program: await findUv(),
      args: ['python', ...args, '--no-config'],
      cwd,
      env: { ...hostEnv, UV_PYTHON_DOWNLOADS: 'automatic', UV_NO_PROGRESS: '1' },
    });
  return {
    async listVersions() {
      const said = await uv('/', ['list', '--all-versions', '--only-downloads', '--output-format', 'json']);
      const found = listSchema.parse(JSON.parse(said));
      const plain = found.filter(({ implementation, variant }) => implementation === 'cpython' && variant === 'default');
      return [...new Set(plain.map(({ version }) => version))].filter((version) => /^[\d.]+$/.test(version));
    },
    async install(version, directory) {
      await uv(directory, ['install', version, '--install-dir', directory, '--no-bin']);
      const name = (await readdir(directory)).find((entry) => entry.startsWith(`cpython-${version}-`));
      if (name === undefined) throw new Error('uv installed no Python.');
      return `${directory}/${name}`;
    },
  };
}
