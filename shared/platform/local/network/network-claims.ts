import { access, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { ifMissing } from '#shared/files/if-missing.ts';
import { replaceFile } from '#shared/files/replace-file.ts';
import type { OpenPorts } from './network-plan.ts';

/** A network that is in use, or was until its platform disappeared. */
export interface NetworkClaim {
  /** Number of the network in the range of addresses. */
  readonly index: number;
  /** 8 hex digits; see `planAddresses`. */
  readonly platform: string;
  /** Data directory of the platform. */
  readonly dataDir: string;
  /** The app. */
  readonly owner: string;
  readonly ports: OpenPorts;
}

/** Numbers of networks, shared by all platforms of a machine: no two of them give out the same addresses. */
export interface NetworkClaims {
  /** The claim of an owner; a new one if it has none. @throws Error if all numbers are taken */
  claim(owner: string): Promise<{ claim: NetworkClaim; isNew: boolean }>;
  find(owner: string): Promise<NetworkClaim | undefined>;
  /** All claims of this platform. */
  list(): Promise<readonly NetworkClaim[]>;
  setPorts(claim: NetworkClaim, ports: OpenPorts): Promise<void>;
  release(claim: NetworkClaim): Promise<void>;
  /** Claims of platforms whose data directory is gone: nobody else frees them. */
  listAbandoned(): Promise<readonly NetworkClaim[]>;
}

/**
 * One file per number, created exclusively.
 * @param directory emptied by a restart of the machine, as its networks are
 * @param count how many numbers there are
 */
export function openNetworkClaims(
  directory: string,
  { platform, dataDir, count }: { platform: string; dataDir: string; count: number },
): NetworkClaims {
  const fileOf = (index: number): string => `${directory}/${index}`;
  const readAll = async (): Promise<NetworkClaim[]> => {
    const names = (await readdir(directory).catch(ifMissing([]))).filter((name) => /^\d+$/.test(name));
    const texts = await Promise.all(names.map((name) => readFile(`${directory}/${name}`, 'utf8').catch(ifMissing(''))));
    return texts.flatMap((text) => parseClaim(text) ?? []);
  };
  const isOurs = (claim: NetworkClaim): boolean => claim.platform === platform;
  const find = async (owner: string): Promise<NetworkClaim | undefined> =>
    (await readAll()).find((claim) => isOurs(claim) && claim.owner === owner);
  return {
    find,
    list: async () => (await readAll()).filter(isOurs),
    async claim(owner) {
      const known = await find(owner);
      if (known !== undefined) return { claim: known, isNew: false };
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const taken = new Set((await readdir(directory)).map(Number));
      for (let index = 0; index < count; index++) {
        if (taken.has(index)) continue;
        const claim = { index, platform, dataDir, owner, ports: { toHost: [], fromHost: [] } };
        try {
          await writeFile(fileOf(index), JSON.stringify(claim), { flag: 'wx', mode: 0o600 });
          return { claim, isNew: true };
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
        }
      }
      throw new Error('No network is left for another app. Set PAAS_APP_NETWORK to a larger range.');
    },
    setPorts: (claim, ports) => replaceFile(fileOf(claim.index), JSON.stringify({ ...claim, ports }), 0o600),
    release: ({ index }) => rm(fileOf(index), { force: true }),
    async listAbandoned() {
      const others = (await readAll()).filter((claim) => !isOurs(claim));
      const gone = await Promise.all(others.map((claim) => isMissing(claim.dataDir)));
      return others.filter((_, at) => gone[at]);
    },
  };
}

/** Undefined for a file whose writer was cut off. */
function parseClaim(text: string): NetworkClaim | undefined {
  try {
    return JSON.parse(text) as NetworkClaim;
  } catch {
    return undefined;
  }
}

function isMissing(path: string): Promise<boolean> {
  return access(path).then(() => false, ifMissing(true));
}
