import { mkdir, readFile, writeFile } from 'node:fs/promises';
import type { AppId } from '#shared/ids.ts';

// Above everything that distributions, systemd and container engines hand out, below what 32-bit tools take for negative.
const firstUid = 0x7000_0000;
const uidCount = 0x0fff_0000;

export interface SandboxUids {
  /** The same for an app at all times, and never another app's. */
  ensureUid(appId: AppId): Promise<number>;
}

/**
 * Uids start from a hash of the app's id, so that platforms on one machine rarely meet; the one file per uid in
 * `directory`, made exclusively, is what rules out that two apps of this platform ever do.
 */
export function openSandboxUids(directory: string): SandboxUids {
  return {
    async ensureUid(appId) {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const start = await hash(appId);
      for (let step = 0; step < uidCount; step++) {
        const uid = firstUid + ((start + step) % uidCount);
        if ((await claim(`${directory}/${uid}`, appId)) === appId) return uid;
      }
      throw new Error('No user id is left for another app.');
    },
  };
}

/** Whose the file is now. */
async function claim(file: string, appId: AppId): Promise<string> {
  try {
    await writeFile(file, appId, { flag: 'wx', flush: true });
    return appId;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    const owner = await readFile(file, 'utf8');
    if (owner !== '') return owner;
    // Its maker died between creating and writing. Nobody ever ran under it.
    await writeFile(file, appId, { flush: true });
    return appId;
  }
}

async function hash(text: string): Promise<number> {
  const digest = new DataView(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
  return digest.getUint32(0) % uidCount;
}
