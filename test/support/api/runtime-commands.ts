import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const root = new URL('../../../', import.meta.url).pathname;

/** Runtimes other than the process of the test, in which the API at the edge runs. */
export const apiRuntimes = ['node', 'bun', 'deno', 'workerd'] as const;
/** One of `apiRuntimes`. */
export type ApiRuntime = (typeof apiRuntimes)[number];

/** Fetched from the package registry, once a machine. */
const packages: Partial<Record<ApiRuntime, string>> = { deno: 'deno@2.9.6', workerd: 'workerd@1.20261117.1' };

function npx(runtime: ApiRuntime): [string, ...string[]] {
  const name = packages[runtime] ?? runtime;
  return [process.execPath, join(root, 'node_modules/npm/bin/npx-cli.js'), '--yes', '--package', name, '--', runtime];
}

/** Whether the runtime is here, or can be fetched. */
export function isRuntimeAvailable(runtime: ApiRuntime): boolean {
  if (packages[runtime] === undefined) return true;
  const [command, ...args] = npx(runtime);
  return spawnSync(command, [...args, '--version'], { stdio: 'ignore' }).status === 0;
}

/** Starts the API at the edge, as docs/edge.md says; for workerd after `npm run edge:bundle`, with the committed configuration. */
export function runtimeCommand(runtime: ApiRuntime, httpPort: number): [string, ...string[]] {
  const main = 'deploy/edge/serve.ts';
  switch (runtime) {
    case 'node':
      return [process.execPath, main];
    case 'bun':
      return [join(root, 'node_modules/.bin/bun'), main];
    case 'deno': {
      const permissions = ['--allow-net', '--allow-env', '--allow-read', '--allow-sys'];
      return [...npx(runtime), 'run', ...permissions, '--node-modules-dir=manual', main];
    }
    case 'workerd':
      return [...npx(runtime), 'serve', 'deploy/edge/worker.capnp', '--socket-addr', `http=127.0.0.1:${httpPort}`];
  }
}
