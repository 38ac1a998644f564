import { copyFile, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Clock, systemClock } from '#shared/clock.ts';
import type { Db } from '#shared/database/db.ts';
import type { GitIndexer } from '#shared/git/git-indexers.ts';
import type { ApplyPush, GitStorage, PushRequest, RefResult } from '#shared/git/git-storage.ts';
import type { TolerableFault } from '#shared/git/objects/tolerable-faults.ts';
import { createDirectoryPackFiles } from '#shared/git/packs/files/directory-pack-files.ts';
import type { PackFiles } from '#shared/git/packs/files/pack-files.ts';
import { createGitStorageFrom, createPostgresGitDrivers, type GitDrivers } from '#shared/git/storage/create-git-storage.ts';
import { createFakeGitStorage } from '#shared/git/storage/fake-git-storage.ts';
import { git } from '#shared/git/testing/git-client.ts';
import { type GitTestServer, serveGit } from '#shared/git/testing/git-server.ts';
import { openObjectStorePackFiles } from '#shared/git/testing/object-store-files.ts';
import { newUuid, type RepositoryId } from '#shared/ids.ts';
import { createLog, type Log } from '#shared/log.ts';
import { createTestDatabase } from '#test/support/database/test-database.ts';

/** A git storage with a server that stock git can talk to, and a directory for clients. */
export interface GitFixture {
  directory: string;
  storage: GitStorage;
  server: GitTestServer;
  db: Db;
  /** URL of the database. */
  url: string;
  /** What the storage has logged: faults of the server. */
  logged: string[];
  /** What the next pushes do. A test can replace it. */
  applyPush: (repositoryId: RepositoryId) => ApplyPush;
  /** Admits the pack and moves the refs, like a platform without builds. */
  moveRefs(repositoryId: RepositoryId, request: PushRequest): Promise<RefResult[]>;
  newRepository(): RepositoryId;
  /** An empty working copy whose `origin` is the repository. */
  workingCopy(repositoryId: RepositoryId): Promise<string>;
  /** A bare repository for stock git, made of the stored packs and refs. Returns its path. */
  exportBare(repositoryId: RepositoryId): Promise<string>;
  /** Names of the quarantines of a repository. */
  listQuarantines(repositoryId: RepositoryId): Promise<string[]>;
  close(): Promise<void>;
}

/** Where a fixture can keep its packs. */
export const storageKinds = ['postgres', 'object store', 'memory'] as const;

/** The driver for packs, and how to close it. */
interface FixtureFiles {
  files: PackFiles;
  close(): Promise<void>;
}

async function openFixtureFiles(kind: (typeof storageKinds)[number], directory: string, log: Log): Promise<FixtureFiles> {
  if (kind !== 'object store') return { files: createDirectoryPackFiles(join(directory, 'data')), close: async () => undefined };
  const { files, close } = await openObjectStorePackFiles(join(directory, 'cache'), log);
  return { files, close };
}

/** What can differ between fixtures. */
export interface GitFixtureOptions {
  clock?: Clock;
  /** Wraps the drivers, to observe them or to interfere. */
  wrap?: (drivers: GitDrivers) => GitDrivers;
  indexer?: GitIndexer;
  /** Faults that objects may have. */
  tolerated?: readonly TolerableFault[];
}

/** Starts a storage. The caller closes it. */
export async function createGitFixture(
  kind: (typeof storageKinds)[number] = 'postgres',
  { clock = systemClock, wrap = (drivers) => drivers, tolerated = [], indexer = 'native' }: GitFixtureOptions = {},
): Promise<GitFixture> {
  const directory = await mkdtemp(join(tmpdir(), 'paas-git-'));
  const logged: string[] = [];
  const log = createLog('warn', (line) => logged.push(line));
  const data = join(directory, 'data');
  const database = await createTestDatabase();
  const { files, close: closeFiles } = await openFixtureFiles(kind, directory, log);
  const storage =
    kind === 'memory'
      ? createFakeGitStorage({ directory: data, log, clock, tolerated, indexer })
      : createGitStorageFrom(
          { directory: data, log, clock, tolerated, indexer },
          wrap({ ...createPostgresGitDrivers(database.db), files }),
        );
  let clients = 0;
  const fixture: GitFixture = {
    directory,
    storage,
    db: database.db,
    url: database.url,
    logged,
    server: await serveGit(storage, (repositoryId) => fixture.applyPush(repositoryId), directory),
    applyPush: (repositoryId) => (request) => fixture.moveRefs(repositoryId, request),
    newRepository: () => newUuid<RepositoryId>(),
    async moveRefs(repositoryId, { commands, atomic, pack }) {
      return await database.db.transaction().execute(async (transaction) => {
        await pack?.admit(transaction);
        const names = new Set(commands.map(({ name }) => name));
        const movesAll = atomic && (await storage.refs.compareAndSwap(transaction, repositoryId, commands));
        const moved = atomic ? new Set(movesAll ? names : []) : await storage.refs.swapEach(transaction, repositoryId, commands);
        return commands.map(({ name }) =>
          moved.has(name) ? { name, status: 'ok' } : { name, status: 'rejected', reason: 'fetch first' },
        );
      });
    },
    async workingCopy(repositoryId) {
      const path = join(directory, `client-${++clients}`);
      await git(directory, 'init', '-q', path);
      await git(path, 'remote', 'add', 'origin', fixture.server.url(repositoryId));
      return path;
    },
    async exportBare(repositoryId) {
      const path = join(directory, `bare-${++clients}`);
      await git(directory, 'init', '-q', '--bare', path);
      for (const packId of await files.listPacks(repositoryId, 0)) {
        const { pack, index, release } = await files.locatePack(repositoryId, packId);
        await copyFile(pack as string, join(path, 'objects', 'pack', `pack-${packId}.pack`));
        await copyFile(index as string, join(path, 'objects', 'pack', `pack-${packId}.idx`));
        release?.();
      }
      for (const { name, oid } of await storage.refs.listRefs(repositoryId)) {
        await mkdir(join(path, name, '..'), { recursive: true });
        await writeFile(join(path, name), `${oid}\n`);
      }
      return path;
    },
    listQuarantines: (repositoryId) => readdir(join(data, repositoryId, 'quarantine')).catch(() => []),
    async close() {
      await fixture.server.close();
      await storage.close();
      await closeFiles();
      await database.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
  return fixture;
}
