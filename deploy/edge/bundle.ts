/** Writes the bundle of the API for workerd and Wrangler: `npm run edge:bundle`, to `deploy/edge/build/worker.js`. */
import { bundleWorker } from '#deploy/edge/bundle-worker.ts';

const { bytes } = await bundleWorker();
console.log(`deploy/edge/build/worker.js: ${Math.round(bytes / 1024)} KiB`);
