/** What a static site runs: `node main.ts <directory> [--fallback]`, listening on PORT of 127.0.0.1. Mounted into the sandbox with this folder alone. */
import { argv, env } from 'node:process';
import { createStaticServer } from './static-server.ts';

const [directory = '.', ...flags] = argv.slice(2);
const server = await createStaticServer(directory, { fallback: flags.includes('--fallback') });
server.listen(Number(env.PORT ?? 5000), '127.0.0.1');
process.once('SIGTERM', () => {
  server.close();
  server.closeIdleConnections();
});
