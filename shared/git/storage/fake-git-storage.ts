import type { GitStorage } from '#shared/git/git-storage.ts';
import { createFakePackCatalog } from '#shared/git/packs/catalog/fake-pack-catalog.ts';
import { createFakePackFiles } from '#shared/git/packs/files/fake-pack-files.ts';
import { createFakeRefs } from '#shared/git/refs/fake-refs.ts';
import { createGitStorageFrom, type GitStorageOptions } from '#shared/git/storage/create-git-storage.ts';

/** Git storage for tests: everything but the quarantine is in memory. It takes no part in the caller's transactions. */
export function createFakeGitStorage(options: GitStorageOptions): GitStorage {
  return createGitStorageFrom(options, {
    refs: createFakeRefs(),
    catalog: createFakePackCatalog(),
    files: createFakePackFiles(),
  });
}
