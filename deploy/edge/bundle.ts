/** Writes the bundle of the API for workerd and Wrangler: `npm run edge:bundle`, to `deploy/edge/build/worker.js`. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { rolldown } from 'rolldown';

const directory = import.meta.dirname;

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
await writeFile(join(directory, 'build/worker.js'), code);
console.log(`deploy/edge/build/worker.js: ${Math.round(code.length / 1024)} KiB`);
