import { mkdtemp, realpath, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BuildDrivers, type BuildDriversOptions, createBuildDrivers } from '#shared/platform/local/builds/build-drivers.ts';
import { removeTree } from '#shared/platform/local/disk/trees.ts';
import { openVolumes } from '#shared/platform/local/disk/volumes.ts';
import { openSandbox, type Sandbox } from '#shared/platform/local/sandbox/open-sandbox.ts';

export interface TestBuilds extends BuildDrivers {
  readonly dataDir: string;
  readonly sandbox: Sandbox;
  stop(): Promise<void>;
}

/** Real builds in a data directory of their own, closed to everybody else as an operator's is. */
export async function openTestBuilds(
  limits: BuildDriversOptions['limits'] = {},
  imageRegistries: BuildDriversOptions['imageRegistries'] = { mirrors: {}, insecure: [] },
): Promise<TestBuilds> {
  const dataDir = await realpath(await mkdtemp(join(tmpdir(), 'paas-builds-')));
  // Toolchains of an earlier run, where the operator of the tests keeps them: systems of Debian take a minute each to install.
  const kept = process.env['PAAS_TEST_TOOLCHAINS'];
  if (kept !== undefined) await symlink(kept, `${dataDir}/toolchains`);
  const sandbox = await openSandbox({ dataDir, path: process.env['PATH'] ?? '' });
  const volumes = await openVolumes(dataDir);
  const drivers = createBuildDrivers({ dataDir, sandbox, volumes, hostEnv: process.env, limits, imageRegistries });
  return {
    ...drivers,
    dataDir,
    sandbox,
    async stop() {
      await drivers.builds.stop();
      await volumes.close();
      await removeTree(dataDir);
    },
  };
}
