import { exitCodes } from '#cli/errors/cli-error.ts';
import { runCommandLine } from '#cli/run.ts';

// Ctrl-C and a closed pipe (`| head`) are no errors.
process.on('SIGINT', () => process.exit(exitCodes.interrupted));
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? exitCodes.ok : exitCodes.failed));
}

process.exitCode = await runCommandLine(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
});
