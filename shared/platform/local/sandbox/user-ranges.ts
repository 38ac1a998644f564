import { mkdir } from 'node:fs/promises';
import { claimId } from './claim-id.ts';

/** The users of a container: uid 0 inside is the app's own uid outside, and n is `first` + n. Groups likewise. */
export interface UserRange {
  /** The app's uid. */
  readonly root: number;
  /** A multiple of `usersOfContainer`. */
  readonly first: number;
}

/** How many uids, and as many gids, a container has: all that images use, 65534 (nobody) included. */
export const usersOfContainer = 65536;

// Below the uids of apps, above those that distributions give to people and to their containers.
const firstUid = 0x1000_0000;
const rangeCount = 0x6000_0000 / usersOfContainer;

/** Whether a file of this user, or group, belongs to the container. */
export function isOfContainer(id: number, { root, first }: UserRange): boolean {
  return id === root || (id > first && id < first + usersOfContainer);
}

/** The ranges of users that owners have on this machine. */
export interface UserRanges {
  /** The range of an owner (an app's id): always the same, and never that of another. @throws Error when none is left */
  ensureRange(owner: string, root: number): Promise<UserRange>;
}

/** One file per range in `directory`, created exclusively, as `openSandboxUids` does it. */
export function openUserRanges(directory: string): UserRanges {
  return {
    async ensureRange(owner, root) {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const digest = new DataView(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(owner)));
      const start = digest.getUint32(0) % rangeCount;
      for (let step = 0; step < rangeCount; step++) {
        const first = firstUid + ((start + step) % rangeCount) * usersOfContainer;
        if ((await claimId(`${directory}/${first}`, owner)) === owner) return { root, first };
      }
      throw new Error('No range of user ids is left for another app with a container image.');
    },
  };
}
