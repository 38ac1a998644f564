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

/** A platform whose data directory is gone: nobody else frees what it had. */
export interface AbandonedPlatform {
  readonly platform: string;
  readonly claims: readonly NetworkClaim[];
}

/** Numbers of networks, shared by all platforms of a machine: no two of them give out the same addresses. */
export interface NetworkClaims {
  /**
   * The claim of an owner; a new one if it has none.
   * @param findFree which numbers may be given out; called for a new claim only
   * @throws Error if no number is left
   */
  claim(owner: string, findFree: () => Promise<(index: number) => boolean>): Promise<{ claim: NetworkClaim; isNew: boolean }>;
  find(owner: string): Promise<NetworkClaim | undefined>;
  /** All claims of this platform. */
  list(): Promise<readonly NetworkClaim[]>;
  setPorts(claim: NetworkClaim, ports: OpenPorts): Promise<void>;
  release(claim: NetworkClaim): Promise<void>;
  /** Records that this platform has firewall rules, before it has any claim. */
  register(): Promise<void>;
  /** Deletes the record of a platform without claims. */
  unregister(platform: string): Promise<void>;
  listAbandoned(): Promise<readonly AbandonedPlatform[]>;
}

/**
 * One file per number, created exclusively, and one per platform. Only one process per platform changes its claims, so it reads them
 * once.
 * @param directory emptied by a restart of the machine, as its networks are
 * @param count how many numbers there are
 */
export function openNetworkClaims(
  directory: string,
  { platform, dataDir, count }: { platform: string; dataDir: string; count: number },
): NetworkClaims {
  const fileOf = (index: number): string => `${directory}/${index}`;
  const platformsDir = `${directory}/platforms`;
  const readAll = async (): Promise<NetworkClaim[]> => {
    const names = (await readdir(directory).catch(ifMissing([]))).filter((name) => /^\d+$/.test(name));
    return (await Promise.all(names.map((name) => readRecord<NetworkClaim>(`${directory}/${name}`)))).flatMap(
      (claim) => claim ?? [],
    );
  };
  let own: Promise<Map<string, NetworkClaim>> | undefined;
  const readOwn = (): Promise<Map<string, NetworkClaim>> => {
    own ??= readAll().then(
      (claims) => new Map(claims.filter((claim) => claim.platform === platform).map((claim) => [claim.owner, claim])),
    );
    own.catch(() => {
      own = undefined;
    });
    return own;
  };
  return {
    find: async (owner) => (await readOwn()).get(owner),
    list: async () => [...(await readOwn()).values()],
    async claim(owner, findFree) {
      const claims = await readOwn();
      const known = claims.get(owner);
      if (known !== undefined) return { claim: known, isNew: false };
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const isFree = await findFree();
      const taken = new Set((await readdir(directory)).map(Number));
      for (let index = 0; index < count; index++) {
        if (taken.has(index) || !isFree(index)) continue;
        const claim = { index, platform, dataDir, owner, ports: { toHost: [], fromHost: [] } };
        try {
          await writeFile(fileOf(index), JSON.stringify(claim), { flag: 'wx', mode: 0o600 });
          claims.set(owner, claim);
          return { claim, isNew: true };
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
        }
      }
      throw new Error(
        'No network is left for another app: all addresses of PAAS_APP_NETWORK are taken by apps, or by interfaces and routes of this host. Set it to a larger or another range.',
      );
    },
    async setPorts(claim, ports) {
      const changed = { ...claim, ports };
      await replaceFile(fileOf(claim.index), JSON.stringify(changed), 0o600);
      (await readOwn()).set(claim.owner, changed);
    },
    async release({ index, owner, platform: claimant }) {
      await rm(fileOf(index), { force: true });
      if (claimant === platform) (await readOwn()).delete(owner);
    },
    async register() {
      await mkdir(platformsDir, { recursive: true, mode: 0o700 });
      await replaceFile(`${platformsDir}/${platform}`, JSON.stringify({ platform, dataDir }), 0o600);
    },
    unregister: (gone) => rm(`${platformsDir}/${gone}`, { force: true }),
    async listAbandoned() {
      const names = await readdir(platformsDir).catch(ifMissing([]));
      const records = await Promise.all(
        names.map((name) => readRecord<Pick<NetworkClaim, 'platform' | 'dataDir'>>(`${platformsDir}/${name}`)),
      );
      const claims = await readAll();
      const dataDirs = new Map(
        [...claims, ...records.flatMap((record) => record ?? [])].map((known) => [known.platform, known.dataDir]),
      );
      dataDirs.delete(platform);
      const gone = await Promise.all([...dataDirs].map(async ([id, path]) => ((await isMissing(path)) ? [id] : [])));
      return gone.flat().map((id) => ({ platform: id, claims: claims.filter((claim) => claim.platform === id) }));
    },
  };
}

/** Undefined for a file whose writer was cut off. */
async function readRecord<Record extends { platform: string; dataDir: string }>(file: string): Promise<Record | undefined> {
  const text = await readFile(file, 'utf8').catch(ifMissing(''));
  try {
    const record = JSON.parse(text) as Record;
    return /^[0-9a-f]{8}$/.test(record.platform) && record.dataDir.startsWith('/') ? record : undefined;
  } catch {
    return undefined;
  }
}

function isMissing(path: string): Promise<boolean> {
  return access(path).then(() => false, ifMissing(true));
}
