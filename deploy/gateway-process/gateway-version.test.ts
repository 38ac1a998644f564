import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { GatewayStart } from '#deploy/gateway-process/gateway-start.ts';
import { listGatewayFiles, readGatewayVersion } from '#deploy/gateway-process/gateway-version.ts';
import type { GatewayOptions } from '#gateway/gateway-options.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paas-gateway-version-'));
});
afterAll(() => rm(directory, { recursive: true }));

/** Starts a gateway process as the control plane does, and ends it again; the files that Node loaded for it, relative to the root. */
async function traceLoadedFiles(): Promise<string[]> {
  const trace = join(directory, 'loaded.txt');
  const hooks = join(directory, 'trace.mjs');
  await writeFile(
    hooks,
    `import { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
registerHooks({
  load(url, context, nextLoad) {
    if (url.startsWith('file:')) appendFileSync(${JSON.stringify(trace)}, url + '\\n');
    return nextLoad(url, context);
  },
});`,
  );
  const options: GatewayOptions = {
    dataDir: join(directory, 'data'),
    host: '127.0.0.1',
    httpPort: 0,
    httpsPort: 0,
    apiHosts: ['localhost'],
    appsDomain: 'apps.localhost',
    trustedProxies: [],
    connectionsPerAddress: 1000,
  };
  const gateway = spawn(
    process.execPath,
    ['--import', hooks, join(root, 'deploy/gateway.ts'), JSON.stringify(options), 'traced'],
    {
      cwd: '/',
      env: {},
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    },
  );
  const exited = once(gateway, 'exit');
  const [start] = (await once(gateway, 'message')) as [GatewayStart];
  gateway.kill('SIGTERM');
  await exited;
  expect(start).toMatchObject({ outcome: 'serving' });
  const urls = (await readFile(trace, 'utf8')).trimEnd().split('\n');
  return [...new Set(urls.map((url) => relative(root, fileURLToPath(url))))].filter((file) => !file.startsWith('..')).sort();
}

describe('the version of the gateway’s code', () => {
  it('covers every file that a gateway process loads', async () => {
    const loaded = await traceLoadedFiles();
    // The files of packages are covered by the lockfile.
    const own = loaded.filter((file) => !file.startsWith('node_modules/'));
    expect(loaded).toContain('node_modules/undici/index.js');
    expect(own).toContain('shared/tls/issue-certificate.ts');
    expect(await listGatewayFiles(root)).toEqual(expect.arrayContaining(own));
  });

  it('differs when any of these files, the lockfile, a patch or package.json changes, and when no other file does', async () => {
    const copy = join(directory, 'copy');
    for (const name of ['deploy', 'gateway', 'shared', 'patches', 'package.json', 'bun.lockb'])
      await cp(join(root, name), join(copy, name), { recursive: true });
    const before = await readGatewayVersion(copy);
    expect(before).toBe(await readGatewayVersion(root));
    await appendFile(join(copy, 'sshd.ts'), '// changed');
    await appendFile(join(copy, 'deploy/banner.ts'), '// changed');
    expect(await readGatewayVersion(copy)).toBe(before);
    const files = [
      ...(await listGatewayFiles(copy)),
      'shared/errors.ts',
      'shared/tls/issue-certificate.ts',
      'bun.lockb',
      'package.json',
      'patches/ssh2@1.17.0.patch',
    ];
    const unchanged: string[] = [];
    for (const file of new Set(files)) {
      const content = await readFile(join(copy, file));
      await appendFile(join(copy, file), ' ');
      if ((await readGatewayVersion(copy)) === before) unchanged.push(file);
      await writeFile(join(copy, file), content);
    }
    expect(unchanged).toEqual([]);
  });
});
