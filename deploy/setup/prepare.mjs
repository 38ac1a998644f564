/**
 * Makes a bare machine ready: the locked packages and the host's tools. `npm start`, `npm test` and `npm run check` begin
 * with it, so it runs on whatever Node the machine has (18 or newer), with nothing installed. Silent when there is nothing
 * to do; a failure is one line that says what to do.
 */
import { SetupError } from './fault.mjs';
import { ensureHostTools } from './host-tools.mjs';
import { ensurePackages } from './packages.mjs';

const supported = ['linux-x64', 'linux-arm64'];

try {
  const platform = `${process.platform}-${process.arch}`;
  if (!supported.includes(platform))
    throw new SetupError(`This runs on ${supported.join(' and ')}, and this machine is ${platform}.`);
  await ensurePackages();
  await ensureHostTools();
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  console.error(`\n ! ${error.message}`);
  process.exitCode = 1;
}
