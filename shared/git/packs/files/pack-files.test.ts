import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createDirectoryPackFiles } from '#shared/git/packs/files/directory-pack-files.ts';
import { createFakePackFiles } from '#shared/git/packs/files/fake-pack-files.ts';
import type { PackFiles, PackPaths } from '#shared/git/packs/files/pack-files.ts';
import { openQuarantine, sweepQuarantines } from '#shared/git/packs/files/quarantine.ts';
import type { ByteLocation } from '#shared/git/packs/reading/random-access.ts';
import { openObjectStorePackFiles } from '#shared/git/testing/object-store-files.ts';
import { newUuid, type RepositoryId } from '#shared/ids.ts';
import { createLog } from '#shared/log.ts';

const log = createLog('silent', () => undefined);

interface Opened {
  files: PackFiles;
  close(): Promise<void>;
}

const drivers: [string, (directory: string) => Promise<Opened>][] = [
  ['memory', async () => ({ files: createFakePackFiles(), close: async () => undefined })],
  ['a directory', async (directory) => ({ files: createDirectoryPackFiles(directory), close: async () => undefined })],
  ['an object store', (directory) => openObjectStorePackFiles(join(directory, 'cache'), log)],
];

describe.each(drivers)('pack files in %s', (name, open) => {
  let directory: string;
  let files: PackFiles;
  let close: () => Promise<void>;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'paas-pack-files-'));
    ({ files, close } = await open(join(directory, 'packs')));
  });
  afterAll(async () => {
    await close();
    await rm(directory, { recursive: true, force: true });
  });

  const newPackId = (): string => randomBytes(20).toString('hex');

  async function quarantine(content = 'pack'): Promise<PackPaths> {
    const place = await mkdtemp(join(directory, 'quarantine-'));
    const paths = { packPath: join(place, 'pack'), indexPath: join(place, 'idx'), linksPath: join(place, 'links') };
    await writeFile(paths.packPath, content);
    await writeFile(paths.indexPath, `index of ${content}`);
    await writeFile(paths.linksPath, 'null');
    return paths;
  }

  async function store(repositoryId: RepositoryId, packId: string, content?: string): Promise<void> {
    const finished = await quarantine(content);
    await files.preparePack(repositoryId, packId, finished);
    await files.storePack(repositoryId, packId, finished);
  }

  const bytes = async (location: ByteLocation): Promise<string> =>
    typeof location === 'string' ? await readFile(location, 'utf8') : Buffer.from(location).toString('utf8');

  async function read(repositoryId: RepositoryId, packId: string): Promise<[string, string, string]> {
    const { pack, index, links, release } = await files.locatePack(repositoryId, packId);
    try {
      return [await bytes(pack), await bytes(index), await bytes(links)];
    } finally {
      release?.();
    }
  }

  it('gives back the three files of a stored pack', async () => {
    const [repositoryId, packId] = [newUuid<RepositoryId>(), newPackId()];
    await store(repositoryId, packId, 'some');
    expect(await read(repositoryId, packId)).toEqual(['some', 'index of some', 'null']);
  });

  it('stores a pack again without harm, with its files in quarantine or not', async () => {
    const [repositoryId, packId] = [newUuid<RepositoryId>(), newPackId()];
    const finished = await quarantine('twice');
    await files.preparePack(repositoryId, packId, finished);
    await files.preparePack(repositoryId, packId, finished);
    await files.storePack(repositoryId, packId, finished);
    await files.storePack(repositoryId, packId, finished);
    await store(repositoryId, packId, 'twice');
    expect(await read(repositoryId, packId)).toEqual(['twice', 'index of twice', 'null']);
    expect(await files.listPacks(repositoryId, 0)).toEqual([packId]);
  });

  it('stores a pack that was swept after it was prepared', async () => {
    const [repositoryId, packId] = [newUuid<RepositoryId>(), newPackId()];
    const finished = await quarantine('swept');
    await files.preparePack(repositoryId, packId, finished);
    await files.deletePack(repositoryId, packId);
    await files.storePack(repositoryId, packId, finished);
    expect(await read(repositoryId, packId)).toEqual(['swept', 'index of swept', 'null']);
  });

  it('lists the repositories that have packs, and their packs by age', async () => {
    const [one, other] = [newUuid<RepositoryId>(), newUuid<RepositoryId>()];
    const ids = [newPackId(), newPackId(), newPackId()];
    for (const packId of ids) await store(one, packId);
    expect(await files.listRepositories()).toContain(one);
    expect(await files.listRepositories()).not.toContain(other);
    expect([...(await files.listPacks(one, 0))].sort()).toEqual(ids.toSorted());
    expect(await files.listPacks(other, 0)).toEqual([]);
    // A crash leaves nothing in memory, so the fake does not know ages.
    if (name !== 'memory') expect(await files.listPacks(one, 3600)).toEqual([]);
  });

  it('deletes one pack, or all of a repository, and reports whether there was one', async () => {
    const [repositoryId, other] = [newUuid<RepositoryId>(), newUuid<RepositoryId>()];
    const ids = [newPackId(), newPackId()] as const;
    for (const packId of ids) await store(repositoryId, packId);
    await store(other, ids[0]);
    expect(await files.deletePack(repositoryId, ids[0])).toBe(true);
    expect(await files.deletePack(repositoryId, ids[0])).toBe(false);
    expect(await files.listPacks(repositoryId, 0)).toEqual([ids[1]]);
    expect(await files.deletePacks(repositoryId)).toBe(true);
    expect(await files.deletePacks(repositoryId)).toBe(false);
    expect(await files.listRepositories()).not.toContain(repositoryId);
    expect(await read(other, ids[0])).toEqual(['pack', 'index of pack', 'null']);
  });

  it('sweeps without harm to stored packs', async () => {
    const [repositoryId, packId] = [newUuid<RepositoryId>(), newPackId()];
    await store(repositoryId, packId);
    expect(await files.sweep(0)).toBe(0);
    expect(await read(repositoryId, packId)).toEqual(['pack', 'index of pack', 'null']);
  });
});

describe('a pack that a crash left incomplete', () => {
  it('is listed by its age, and deleted', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'paas-pack-files-'));
    try {
      const files = createDirectoryPackFiles(directory);
      const [repositoryId, whole] = [newUuid<RepositoryId>(), 'a'.repeat(40)];
      const half = 'b'.repeat(40);
      for (const name of ['packPath', 'indexPath', 'linksPath']) await writeFile(join(directory, name), name);
      const finished = Object.fromEntries(
        ['packPath', 'indexPath', 'linksPath'].map((name) => [name, join(directory, name)]),
      ) as unknown as PackPaths;
      await files.storePack(repositoryId, whole, finished);
      const path = join(directory, repositoryId, 'packs', `${half}.pack`);
      await writeFile(path, 'half');
      await utimes(path, new Date(0), new Date(0));
      expect(await files.listPacks(repositoryId, 3600)).toEqual([half]);
      expect(await files.deletePack(repositoryId, half)).toBe(true);
      expect(await files.listPacks(repositoryId, 0)).toEqual([whole]);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });
});

it('counts files that were written in this millisecond as 0 seconds old', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'paas-pack-files-'));
  const now = 1_700_000_000_000;
  vi.useFakeTimers({ toFake: ['Date'], now });
  try {
    const [repositoryId, packId] = [newUuid<RepositoryId>(), 'a'.repeat(40)];
    const packs = join(directory, repositoryId, 'packs');
    await mkdir(packs, { recursive: true });
    const { packPath } = await openQuarantine(directory, repositoryId);
    for (const path of [join(packs, `${packId}.pack`), packPath]) await writeFile(path, 'x');
    // File systems record fractions of a millisecond, which the clock does not have.
    const time = (now + 0.5) / 1000;
    for (const path of [join(packs, `${packId}.pack`), packPath, dirname(packPath)]) await utimes(path, time, time);
    expect(await createDirectoryPackFiles(directory).listPacks(repositoryId, 0)).toEqual([packId]);
    expect(await sweepQuarantines(directory, 0)).toBe(1);
  } finally {
    vi.useRealTimers();
    await rm(directory, { recursive: true, force: true });
  }
});
