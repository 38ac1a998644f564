import { mkdtemp, realpath } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLog } from '#shared/log.ts';
import { createLocalBuilds, type LocalBuilds, type LocalBuildsOptions } from '#shared/platform/local/builds/local-builds.ts';
import { removeTree } from '#shared/platform/local/images/trees.ts';
import { openSandbox, type Sandbox } from '#shared/platform/local/sandbox/open-sandbox.ts';

export interface TestBuilds extends LocalBuilds {
  readonly dataDir: string;
  readonly sandbox: Sandbox;
  stop(): Promise<void>;
}

/** Real builds in a data directory of their own, closed to everybody else as an operator's is. */
export async function openTestBuilds(limits: LocalBuildsOptions['limits'] = {}): Promise<TestBuilds> {
  const dataDir = await realpath(await mkdtemp(join(tmpdir(), 'paas-builds-')));
  const sandbox = await openSandbox({ dataDir, path: process.env['PATH'] ?? '' });
  const builds = createLocalBuilds({ dataDir, log: createLog('silent', () => undefined), sandbox, hostEnv: process.env, limits });
  return { ...builds, dataDir, sandbox, stop: () => removeTree(dataDir) };
}
