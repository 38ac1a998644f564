import { mkdir, readFile, writeFile } from 'node:fs/promises';

// Above everything that distributions, systemd and container engines hand out, below what 32-bit tools take for negative.
const firstUid = 0x7000_0000;
const uidCount = 0x0fff_0000;

export interface SandboxUids {
  /** The same for an owner (an app's id, an add-on's name) at all times, and never another's. */
  ensureUid(owner: string): Promise<number>;
}

/**
 * Uids start from a hash of the owner, so that platforms on one machine rarely meet; the one file per uid in
 * `directory`, made exclusively, is what rules out that two owners of this platform ever do.
 */
export function openSandboxUids(directory: string): SandboxUids {
  return {
    async ensureUid(owner) {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const start = await hash(owner);
      for (let step = 0; step < uidCount; step++) {
        const uid = firstUid + ((start + step) % uidCount);
        if ((await claim(`${directory}/${uid}`, owner)) === owner) return uid;
      }
      throw new Error('No user id is left for another app.');
    },
  };
}

/** Whose the file is now. */
async function claim(file: string, owner: string): Promise<string> {
  try {
    await writeFile(file, owner, { flag: 'wx', flush: true });
    return owner;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    const present = await readFile(file, 'utf8');
    if (present !== '') return present;
    // Its maker died between creating and writing. Nobody ever ran under it.
    await writeFile(file, owner, { flush: true });
    return owner;
  }
}

async function hash(text: string): Promise<number> {
  const digest = new DataView(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
  return digest.getUint32(0) % uidCount;
}
