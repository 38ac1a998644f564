import { readFile } from 'node:fs/promises';
import type { PackFiles } from '#shared/git/packs/files/pack-files.ts';
import type { RepositoryId } from '#shared/ids.ts';

interface SharedPack {
  pack: SharedArrayBuffer;
  index: SharedArrayBuffer;
  links: SharedArrayBuffer;
}

/** Packs in shared memory, for tests. Threads read them without a copy. */
export function createFakePackFiles(): PackFiles {
  const repositories = new Map<RepositoryId, Map<string, SharedPack>>();
  return {
    preparePack: async () => undefined,
    async storePack(repositoryId, packId, { packPath, indexPath, linksPath }) {
      const packs = repositories.get(repositoryId) ?? new Map<string, SharedPack>();
      if (packs.has(packId)) return;
      packs.set(packId, {
        pack: share(await readFile(packPath)),
        index: share(await readFile(indexPath)),
        links: share(await readFile(linksPath)),
      });
      repositories.set(repositoryId, packs);
    },
    async locatePack(repositoryId, packId) {
      const found = repositories.get(repositoryId)?.get(packId);
      if (found === undefined) throw new Error(`there is no pack ${packId}`);
      return found;
    },
    async listRepositories() {
      return [...repositories].flatMap(([repositoryId, packs]) => (packs.size > 0 ? [repositoryId] : []));
    },
    async listPacks(repositoryId) {
      return [...(repositories.get(repositoryId)?.keys() ?? [])];
    },
    async deletePack(repositoryId, packId) {
      return repositories.get(repositoryId)?.delete(packId) ?? false;
    },
    async deletePacks(repositoryId) {
      const existed = (repositories.get(repositoryId)?.size ?? 0) > 0;
      repositories.delete(repositoryId);
      return existed;
    },
    sweep: async () => 0,
  };
}

function share(bytes: Buffer): SharedArrayBuffer {
  const shared = new SharedArrayBuffer(bytes.length);
  new Uint8Array(shared).set(bytes);
  return shared;
}
