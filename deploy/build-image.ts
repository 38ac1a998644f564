/**
 * Builds the container image of the control plane: `npm run image -- --tag registry.example.com/paas:0.1.0`. It needs buildah, or the program
 * that `--program` names, and mmdebstrap, unless `--base` names an image to build upon.
 */
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { StartError } from '#deploy/host/start-error.ts';
import { buildImage } from '#deploy/image/build-image.ts';

try {
  const { values } = parseArgs({
    options: {
      tag: { type: 'string' },
      base: { type: 'string' },
      program: { type: 'string', default: 'buildah' },
    },
  });
  const { tag, base, program } = values;
  if (tag === undefined) throw new StartError('--tag: is required, as --tag registry.example.com/paas:0.1.0');
  await buildImage({ root: fileURLToPath(new URL('..', import.meta.url)), tag, base, program, report: console.log });
  console.log(`The image is ${tag}. To push it: ${program} push ${tag}`);
} catch (error) {
  const isUsage = error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS');
  console.error(` !     ${error instanceof StartError || isUsage ? error.message : String(error)}`);
  process.exitCode = 1;
}
