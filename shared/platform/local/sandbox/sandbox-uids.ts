import { mkdir } from 'node:fs/promises';
import { claimId } from './claim-id.ts';

// Above all uids that distributions, systemd and container engines assign; below those that 32-bit tools read as negative.
const firstUid = 0x7000_0000;
const uidCount = 0x0fff_0000;

/** The users that code runs as. */
export interface SandboxUids {
  /** The uid of an owner (an app's id or an add-on's name): always the same, and never that of another. */
  ensureUid(owner: string): Promise<number>;
}

/**
 * Uids are chosen by a hash of the owner, so that platforms on one machine rarely choose the same. One file per uid in `directory`,
 * created exclusively, makes sure that two owners of this platform never do.
 */
export function openSandboxUids(directory: string): SandboxUids {
  return {
    async ensureUid(owner) {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const start = await hash(owner);
      for (let step = 0; step < uidCount; step++) {
        const uid = firstUid + ((start + step) % uidCount);
        if ((await claimId(`${directory}/${uid}`, owner)) === owner) return uid;
      }
      throw new Error('No user id is left for another app.');
    },
  };
}

async function hash(text: string): Promise<number> {
  const digest = new DataView(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
  return digest.getUint32(0) % uidCount;
}
