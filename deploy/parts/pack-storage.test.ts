import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StartError } from '#deploy/host/start-error.ts';
import { openPackStorage, type PackStorage } from '#deploy/parts/pack-storage.ts';
import { createDirectoryPackFiles } from '#shared/git/packs/files/directory-pack-files.ts';
import { newUuid, type RepositoryId } from '#shared/ids.ts';
import { createLog } from '#shared/log.ts';
import { openTestS3Server, type TestS3Server } from '#shared/object-store/testing/test-s3-server.ts';
import type { ObjectStoreSettings } from '#shared/settings/settings.ts';

describe('where packs are kept', () => {
  const repositoryId = newUuid<RepositoryId>();
  const packId = 'a'.repeat(40);
  let server: TestS3Server;
  let dataDir: string;
  let settings: ObjectStoreSettings;
  let reported: string[];
  beforeEach(async () => {
    server = await openTestS3Server();
    dataDir = await mkdtemp(join(tmpdir(), 'paas-pack-storage-'));
    settings = { ...server.account, prefix: 'paas/', cacheBytes: 1000 };
    reported = [];
  });
  afterEach(async () => {
    await server.close();
    await rm(dataDir, { recursive: true, force: true });
  });

  const open = (objectStore: ObjectStoreSettings | undefined): Promise<PackStorage> =>
    openPackStorage({
      objectStore,
      dataDir,
      log: createLog('silent', () => undefined),
      report: (line) => reported.push(line),
    });

  it('is the data directory, unless an object store is set', async () => {
    const { files, close } = await open(undefined);
    expect((await files.locatePack(repositoryId, packId)).pack).toBe(
      join(dataDir, 'git', repositoryId, 'packs', `${packId}.pack`),
    );
    await close();
  });

  it('moves to the object store with all that is there, once one is set', async () => {
    const place = join(dataDir, 'quarantine');
    await mkdir(place);
    for (const name of ['packPath', 'indexPath', 'linksPath']) await writeFile(join(place, name), name);
    const finished = {
      packPath: join(place, 'packPath'),
      indexPath: join(place, 'indexPath'),
      linksPath: join(place, 'linksPath'),
    };
    await createDirectoryPackFiles(join(dataDir, 'git')).storePack(repositoryId, packId, finished);

    for (let start = 0; start < 2; start++) {
      const { files, close } = await open(settings);
      await rm(join(dataDir, 'pack-cache'), { recursive: true });
      const { pack, release } = await files.locatePack(repositoryId, packId);
      expect(await readFile(pack as string, 'utf8')).toBe('packPath');
      release?.();
      await close();
    }
    expect(reported).toEqual([`-----> Moving 1 packs of repository ${repositoryId} to the object store`]);
    expect(await readdir(join(dataDir, 'git', repositoryId, 'packs'))).toEqual([]);
    expect([...server.objects.keys()].sort()).toEqual(
      ['idx', 'links', 'pack'].map((extension) => `paas/${repositoryId}/${packId}.${extension}`),
    );
  });

  it('is not left by accident: another store, or none, stops the start', async () => {
    await (await open(settings)).close();
    await expect(open(undefined)).rejects.toThrow(
      /^PAAS_OBJECT_STORE_URL: the packs of this platform are in http.*\/packs\/paas\/\./,
    );
    await expect(open({ ...settings, prefix: 'elsewhere/' })).rejects.toThrow(StartError);
    await (await open(settings)).close();
  });

  it.each<[string, (server: TestS3Server) => Partial<ObjectStoreSettings>]>([
    ['PAAS_OBJECT_STORE_ACCESS_KEY_ID', () => ({ accessKeyId: 'nobody' })],
    ['PAAS_OBJECT_STORE_SECRET_ACCESS_KEY', () => ({ secretAccessKey: 'a-wrong-secret' })],
    ['PAAS_OBJECT_STORE_REGION', () => ({ region: 'elsewhere' })],
    ['PAAS_OBJECT_STORE_URL: there is no bucket', ({ account }) => ({ bucketUrl: `${account.bucketUrl}-not` })],
    ['PAAS_OBJECT_STORE_URL: no answer', () => ({ bucketUrl: 'http://127.0.0.1:1/bucket' })],
  ])('stops the start with one line where the store cannot be used: %s', async (line, change) => {
    const bad = { ...settings, ...change(server) };
    const error = await open(bad).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(StartError);
    const { message } = error as StartError;
    expect(message.startsWith(line)).toBe(true);
    expect(message).not.toContain('\n');
    expect(message).not.toContain(bad.secretAccessKey);
    expect(await readdir(dataDir)).toEqual([]);
  });

  it('stops the start where the key may not write', async () => {
    server.fault = ({ method }) => (method === 'PUT' ? { status: 403, code: 'AccessDenied' } : undefined);
    await expect(open(settings)).rejects.toThrow(/^PAAS_OBJECT_STORE_URL: .* cannot be written.*AccessDenied/);
  });
});
