import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { replaceFile } from '#shared/files/replace-file.ts';

const directory = import.meta.dirname;

/** Bundles the API for workerd to `deploy/edge/build/worker.js`. @returns the size of the bundle */
export async function bundleWorker(): Promise<{ bytes: number }> {
  const bundle = await rolldown({
    input: join(directory, 'workerd.ts'),
    platform: 'node',
    // Of pg: a socket that workerd has.
    resolve: { conditionNames: ['workerd', 'worker'] },
    external: [/^node:/, /^cloudflare:/, 'pg-native'],
  });
  const { output } = await bundle.generate({ format: 'esm' });
  // A worker is no file. Only modules of the runtime are left to be required.
  const code = output[0].code.replaceAll('import.meta.url', JSON.stringify('file:///worker.js'));
  await mkdir(join(directory, 'build'), { recursive: true });
  await replaceFile(join(directory, 'build/worker.js'), code, 0o644);
  return { bytes: Buffer.byteLength(code) };
}
