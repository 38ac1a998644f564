import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createObjectStorePackFiles } from '#shared/git/packs/files/object-store-pack-files.ts';
import { PackCache } from '#shared/git/packs/files/pack-cache.ts';
import { type PackFiles, PackStorageError } from '#shared/git/packs/files/pack-files.ts';
import { createGitStorage } from '#shared/git/storage/create-git-storage.ts';
import { commitFiles, git, tryGit } from '#shared/git/testing/git-client.ts';
import { serveGit } from '#shared/git/testing/git-server.ts';
import { newUuid, type RepositoryId } from '#shared/ids.ts';
import { createLog } from '#shared/log.ts';
import type { Bucket } from '#shared/object-store/bucket.ts';
import { createS3Bucket } from '#shared/object-store/s3-bucket.ts';
import { openTestS3Server, type TestS3Server } from '#shared/object-store/testing/test-s3-server.ts';
import { createTestDatabase } from '#test/support/database/test-database.ts';

const packIds = ['a', 'b', 'c', 'd'].map((digit) => digit.repeat(40));
const packBytes = 1000;
const [first = '', second = '', third = ''] = packIds;

describe('packs in an object store', () => {
  const repositoryId = newUuid<RepositoryId>();
  let server: TestS3Server;
  let bucket: Bucket;
  let directory: string;
  let cache: string;
  let logged: string[];
  beforeEach(async () => {
    server = await openTestS3Server();
    const patience = { connectMilliseconds: 30_000, idleMilliseconds: 30_000, attempts: 3, backoffMilliseconds: 1 };
    bucket = createS3Bucket({ ...server.account, prefix: '', patience });
    directory = await mkdtemp(join(tmpdir(), 'paas-object-store-'));
    cache = join(directory, 'cache');
    logged = [];
  });
  afterEach(async () => {
    await bucket.close();
    await server.close();
    await rm(directory, { recursive: true, force: true });
  });

  const log = createLog('warn', (line) => logged.push(line));

  /** The driver as a later process with the same cache directory opens it. */
  const openFiles = (bytes = 10 * packBytes): PackFiles =>
    createObjectStorePackFiles({ bucket, cache: new PackCache({ directory: cache, bytes, log }), log });

  /** Stores packs as a process on another machine does: the cache here has none of them. */
  async function storeElsewhere(): Promise<void> {
    for (const packId of packIds) {
      for (const extension of ['pack', 'links', 'idx']) {
        const path = join(directory, 'upload');
        await writeFile(path, `${extension} ${packId}`.padEnd(extension === 'pack' ? packBytes : 1));
        await bucket.putFile(`${repositoryId}/${packId}.${extension}`, path);
      }
    }
    server.fault = () => undefined;
  }

  const gets = (): string[] => server.seen.filter(({ method }) => method === 'GET').map(({ key }) => key);

  async function readPack(files: PackFiles, packId: string): Promise<string> {
    const { pack, release } = await files.locatePack(repositoryId, packId);
    const content = await readFile(pack as string, 'utf8');
    release?.();
    return content.trimEnd();
  }

  it('are downloaded once for concurrent readers, and not again for later ones', async () => {
    await storeElsewhere();
    const files = openFiles();
    const found = await Promise.all(Array.from({ length: 20 }, () => readPack(files, first)));
    expect(new Set(found)).toEqual(new Set([`pack ${first}`]));
    await readPack(files, first);
    expect(gets().sort()).toEqual(['idx', 'links', 'pack'].map((extension) => `${repositoryId}/${first}.${extension}`));
    // A later process finds them on its disk.
    expect(await readPack(openFiles(), first)).toBe(`pack ${first}`);
    expect(gets()).toHaveLength(3);
  });

  it('that this process received are in the cache without a download', async () => {
    const place = join(directory, 'quarantine');
    await mkdir(place);
    for (const name of ['pack', 'idx', 'links']) await writeFile(join(place, name), name);
    const finished = { packPath: join(place, 'pack'), indexPath: join(place, 'idx'), linksPath: join(place, 'links') };
    const files = openFiles();
    await files.preparePack(repositoryId, first, finished);
    await files.storePack(repositoryId, first, finished);
    await rm(place, { recursive: true });
    expect(await readPack(files, first)).toBe('pack');
    expect(gets()).toEqual([]);
  });

  it('stay on disk while there is room, the most recently used ones longest', async () => {
    await storeElsewhere();
    const files = openFiles(2.5 * packBytes);
    for (const packId of [first, second, first, third]) await readPack(files, packId);
    await expect.poll(async () => (await readdir(join(cache, repositoryId))).sort(), { timeout: 20_000 }).toEqual([first, third]);
    expect(await readPack(files, second)).toBe(`pack ${second}`);
  });

  it('stay while somebody reads them, even without room', async () => {
    await storeElsewhere();
    const files = openFiles(1);
    const pinned = await files.locatePack(repositoryId, first);
    for (const packId of [second, third]) await readPack(files, packId);
    expect((await readFile(pinned.pack as string, 'utf8')).trimEnd()).toBe(`pack ${first}`);
    pinned.release?.();
    pinned.release?.();
    await expect.poll(() => readdir(join(cache, repositoryId)), { timeout: 20_000 }).toEqual([]);
  });

  it('are downloaded again when a file on disk was damaged, lost, or left incomplete by a crash', async () => {
    await storeElsewhere();
    await readPack(openFiles(), first);
    await writeFile(join(cache, repositoryId, first, 'pack'), 'rotten');
    await mkdir(join(cache, repositoryId, `${second}.x.part`));
    const files = openFiles();
    expect(await readPack(files, first)).toBe(`pack ${first}`);
    expect(logged.join()).toContain('damaged');
    expect(await readdir(join(cache, repositoryId))).toEqual([first]);
    await rm(cache, { recursive: true });
    expect(await readPack(files, first)).toBe(`pack ${first}`);
  });

  it('are never read incomplete: an interrupted download is repeated', async () => {
    await storeElsewhere();
    let broken = 0;
    server.fault = ({ key }) => (key.endsWith('.pack') && broken++ === 0 ? 'cut' : undefined);
    expect(await readPack(openFiles(), first)).toBe(`pack ${first}`);
    expect(broken).toBe(2);
  });

  it('cannot be read while the store is unavailable, and can afterwards', async () => {
    await storeElsewhere();
    const files = openFiles();
    server.fault = () => ({ status: 503, code: 'SlowDown' });
    const results = await Promise.allSettled([files.locatePack(repositoryId, first), files.locatePack(repositoryId, first)]);
    for (const result of results) expect(result).toMatchObject({ status: 'rejected', reason: expect.any(PackStorageError) });
    await expect(files.listRepositories()).rejects.toThrow(PackStorageError);
    server.fault = () => undefined;
    expect(await readPack(files, first)).toBe(`pack ${first}`);
  });

  it('are listed and deleted even when a crash left only some of their files', async () => {
    await storeElsewhere();
    await bucket.deleteObject(`${repositoryId}/${first}.idx`);
    const files = openFiles();
    expect(await files.listPacks(repositoryId, 0)).toContain(first);
    expect(await files.deletePack(repositoryId, first)).toBe(true);
    expect(await files.listPacks(repositoryId, 0)).not.toContain(first);
  });

  it('reject a push while the store is unavailable, leave nothing of it, and accept it afterwards', async () => {
    const database = await createTestDatabase();
    const data = join(directory, 'data');
    const storage = createGitStorage({ db: database.db, directory: data, files: openFiles(), log, threads: 1 });
    const git0 = await serveGit(
      storage,
      (id) =>
        ({ commands, pack }) =>
          database.db.transaction().execute(async (transaction) => {
            await pack?.admit(transaction);
            await storage.refs.compareAndSwap(transaction, id, commands);
            return commands.map(({ name }) => ({ name, status: 'ok' }) as const);
          }),
      directory,
    );
    try {
      const id = newUuid<RepositoryId>();
      const work = join(directory, 'work');
      await git(directory, 'init', '-q', work);
      await git(work, 'remote', 'add', 'origin', git0.url(id));
      await commitFiles(work, { a: '1' });
      await git(work, 'push', '-q', 'origin', 'main');
      const before = [...server.objects.keys()];
      const head = await commitFiles(work, { a: '2' });

      server.fault = ({ method }) => (method === 'PUT' ? { status: 503, code: 'SlowDown' } : undefined);
      const refused = await tryGit(work, ['push', 'origin', 'main']);
      expect(refused.code).toBe(1);
      expect(refused.stderr).toContain('remote unpack failed: the pack storage cannot be reached');
      expect([...server.objects.keys()]).toEqual(before);
      expect(await storage.refs.listRefs(id)).not.toContainEqual({ name: 'refs/heads/main', oid: head });
      expect(await readdir(join(data, id, 'quarantine'))).toEqual([]);

      server.fault = () => undefined;
      await git(work, 'push', '-q', 'origin', 'main');
      expect(await storage.refs.listRefs(id)).toEqual([{ name: 'refs/heads/main', oid: head }]);

      // A pack whose push was rejected after it was stored is in no repository, and is swept.
      await commitFiles(work, { a: '3' });
      server.fault = ({ method }) => (method === 'HEAD' ? { status: 503, code: 'SlowDown' } : undefined);
      expect((await tryGit(work, ['push', 'origin', 'main'])).stderr).toContain('the pack storage cannot be reached');
      server.fault = () => undefined;
      expect(await storage.sweep(3600)).toBe(0);
      expect(await storage.sweep(0)).toBe(1);
      await git(work, 'push', '-q', 'origin', 'main');
      await rm(cache, { recursive: true });
      await git(directory, 'clone', '-q', git0.url(id), 'clone');
      await git(join(directory, 'clone'), 'fsck', '--full', '--strict');

      await rm(cache, { recursive: true });
      server.fault = () => 'drop';
      const clone = await tryGit(directory, ['clone', git0.url(id), 'none']);
      expect(clone.stderr).toContain('the pack storage cannot be reached');
    } finally {
      await git0.close();
      await storage.close();
      await database.close();
    }
  }, 120_000);
});
