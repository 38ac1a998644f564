/**
 * An SSH server of the real core as a process of its own. Over IPC it receives where the database, the host keys and the
 * packs are, and replies with its port. It runs no jobs.
 */
import { join } from 'node:path';
import { createServices } from '#deploy/control-plane.ts';
import { systemClock } from '#shared/clock.ts';
import { connectPostgres } from '#shared/database/postgres.ts';
import { createDirectoryPackFiles } from '#shared/git/packs/files/directory-pack-files.ts';
import { createObjectStorePackFiles } from '#shared/git/packs/files/object-store-pack-files.ts';
import { PackCache } from '#shared/git/packs/files/pack-cache.ts';
import { createGitStorage } from '#shared/git/storage/create-git-storage.ts';
import { limits } from '#shared/limits.ts';
import { createLog } from '#shared/log.ts';
import { createS3Bucket, type S3BucketOptions } from '#shared/object-store/s3-bucket.ts';
import { createFakePlatform } from '#shared/platform/fake/fake-platform.ts';
import { loadHostKeys } from '#sshd/host-keys.ts';
import { createSshServer } from '#sshd/server.ts';
import { createCoreContext } from '#test/support/core/core-context.ts';

/** The message that starts the server. */
export interface SshServerStart {
  databaseUrl: string;
  /** The directory of host keys, which all servers share. */
  sshDirectory: string;
  /** The directory of quarantines, and of packs; with a store, of the pack cache. */
  gitDirectory: string;
  store: S3BucketOptions | undefined;
}

async function start({ databaseUrl, sshDirectory, gitDirectory, store }: SshServerStart): Promise<number> {
  const log = createLog('warn', (line) => process.stderr.write(`${line}\n`));
  const { db } = connectPostgres(databaseUrl, () => undefined, 10);
  const cache = new PackCache({ directory: join(gitDirectory, 'cache'), bytes: 1024 * 1024, log });
  const files =
    store === undefined
      ? createDirectoryPackFiles(gitDirectory)
      : createObjectStorePackFiles({ bucket: createS3Bucket(store), cache, log });
  const storage = createGitStorage({ db, directory: gitDirectory, files, log, threads: 2 });
  const platform = createFakePlatform({ clock: systemClock });
  const context = await createCoreContext({ db, log, clock: systemClock, platform, git: storage });
  const { sshKeys, pushes } = createServices(context);
  const hostKeys = await loadHostKeys(sshDirectory);
  // All clients of a test come from one address.
  const sshLimits = { ...limits.ssh, slowFromPoints: 1e9, refuseFromPoints: 1e9 };
  const server = createSshServer({ sshKeys, pushes, git: storage.server, hostKeys, limits: sshLimits, clock: systemClock, log });
  return await server.listen(0, '127.0.0.1');
}

process.once('message', (message) => {
  start(message as SshServerStart).then(
    (port) => process.send?.({ port }),
    (error: unknown) => {
      process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
      process.exit(1);
    },
  );
});
// It ends with the process that started it.
process.once('disconnect', () => process.exit(0));
