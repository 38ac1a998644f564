import { createHash } from 'node:crypto';
import { createReadStream, renameSync } from 'node:fs';
import { link, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ifMissing } from '#shared/files/if-missing.ts';
import type { PackPaths } from '#shared/git/packs/files/pack-files.ts';
import type { Log } from '#shared/log.ts';

/** SHA-256 of each file of a pack, in hexadecimal. */
export interface PackDigests {
  pack: string;
  idx: string;
  links: string;
}

/** A pack in the cache, which stays there until `release`. */
export interface CachedPack {
  paths: PackPaths;
  release(): void;
}

/** Where the cache is, and its size. */
export interface PackCacheOptions {
  /** Used by this process alone. Gets `<repository_id>/<pack_id>/` with `pack`, `idx`, `links`, and their digests in `sha256`. */
  directory: string;
  /** How much may stay. Packs in use stay beyond that. */
  bytes: number;
  log: Log;
}

interface Entry {
  bytes: number;
  users: number;
  /** Resolves when the whole pack is in the cache; undefined when that is not known. */
  ready: Promise<void> | undefined;
}

const names = ['pack', 'idx', 'links'] as const;
/** Suffix of directories that are being filled or deleted. Those found at a start are deleted. */
const temporarySuffix = '.part';

/**
 * Packs of a remote store on local disk. Each is downloaded once and stays while there is room; the least recently used packs
 * are dropped first.
 */
export class PackCache {
  readonly #directory: string;
  readonly #mostBytes: number;
  readonly #log: Log;
  /** By `<repository_id>/<pack_id>`, least recently used first. */
  readonly #entries = new Map<string, Entry>();
  #opened: Promise<void> | undefined;
  #bytes = 0;

  constructor({ directory, bytes, log }: PackCacheOptions) {
    this.#directory = directory;
    this.#mostBytes = bytes;
    this.#log = log;
  }

  /**
   * Gives a pack that stays in the cache until it is released, and downloads it if need be. Callers that ask while a download
   * is running share it. What an earlier process left is checked against its digests first.
   *
   * @param key `<repository_id>/<pack_id>`
   * @param download writes the three files into a directory; what it throws is thrown to all that wait for it
   */
  async pin(key: string, download: (directory: string) => Promise<PackDigests>): Promise<CachedPack> {
    await this.#open();
    const entry = this.#entries.get(key) ?? { bytes: 0, users: 0, ready: undefined };
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    entry.users++;
    try {
      for (let again = false; ; again = true) {
        const ready = (entry.ready ??= this.#prepare(key, entry, download));
        await ready;
        if (again || (await this.#isThere(key))) break;
        // Somebody cleared the directory: the first caller to notice downloads the pack again.
        if (entry.ready === ready) entry.ready = undefined;
      }
    } catch (error) {
      this.#release(key, entry);
      throw error;
    }
    let isPinned = true;
    return {
      paths: this.#paths(key),
      release: () => {
        if (isPinned) this.#release(key, entry);
        isPinned = false;
      },
    };
  }

  /** Adds a pack that was just uploaded, by hard links to its files. Where links fail, the pack is downloaded when needed. */
  async add(key: string, { packPath, indexPath, linksPath }: PackPaths, digests: PackDigests): Promise<void> {
    await this.#open();
    if (this.#entries.has(key)) return;
    const entry: Entry = { bytes: 0, users: 0, ready: undefined };
    this.#entries.set(key, entry);
    const added = this.#fill(key, entry, async (directory) => {
      await link(packPath, join(directory, 'pack'));
      await link(indexPath, join(directory, 'idx'));
      await link(linksPath, join(directory, 'links'));
      return digests;
    }).catch((error: unknown) => this.#log.debug('a pack was not put into the cache', { pack: key, error }));
    // Callers that ask for the pack now wait for this. If it fails, they find nothing and download the pack.
    entry.ready = added;
    entry.users++;
    await added;
    this.#release(key, entry);
  }

  /** Drops a pack that was deleted from the store, unless it is in use. */
  async forget(key: string): Promise<void> {
    await this.#open();
    const entry = this.#entries.get(key);
    if (entry?.users === 0) await this.#drop(key, entry);
  }

  #paths(key: string): PackPaths {
    const place = join(this.#directory, key);
    return { packPath: join(place, 'pack'), indexPath: join(place, 'idx'), linksPath: join(place, 'links') };
  }

  #release(key: string, entry: Entry): void {
    entry.users--;
    if (entry.ready === undefined && entry.users === 0 && entry.bytes === 0) this.#entries.delete(key);
    this.#trim();
  }

  #trim(): void {
    for (const [key, entry] of this.#entries) {
      if (this.#bytes <= this.#mostBytes) return;
      if (entry.users > 0 || entry.bytes === 0) continue;
      void this.#drop(key, entry).catch((error: unknown) => {
        this.#log.warn('A pack could not be dropped from the cache.', { pack: key, error });
      });
    }
  }

  /** Renamed synchronously, together with forgetting it: the next caller downloads the pack to a path that is free. */
  async #drop(key: string, entry: Entry): Promise<void> {
    this.#entries.delete(key);
    this.#bytes -= entry.bytes;
    entry.bytes = 0;
    const dropped = this.#temporaryPath(key);
    try {
      renameSync(join(this.#directory, key), dropped);
    } catch (error) {
      ifMissing(undefined)(error);
    }
    await rm(dropped, { recursive: true, force: true });
  }

  #temporaryPath(key: string): string {
    return join(this.#directory, `${key}.${crypto.randomUUID()}${temporarySuffix}`);
  }

  async #isThere(key: string): Promise<boolean> {
    const found = await stat(join(this.#directory, key, 'idx')).catch(ifMissing(undefined));
    return found !== undefined;
  }

  async #prepare(key: string, entry: Entry, download: (directory: string) => Promise<PackDigests>): Promise<void> {
    try {
      if (entry.bytes > 0 && (await this.#isIntact(key))) return;
    } catch (error) {
      entry.ready = undefined;
      throw error;
    }
    await this.#fill(key, entry, download);
  }

  async #fill(key: string, entry: Entry, write: (directory: string) => Promise<PackDigests>): Promise<void> {
    const [place, draft] = [join(this.#directory, key), this.#temporaryPath(key)];
    try {
      await mkdir(draft, { recursive: true, mode: 0o700 });
      const digests = await write(draft);
      await writeFile(join(draft, 'sha256'), names.map((name) => `${digests[name]}  ${name}\n`).join(''));
      // What is there was found damaged.
      await rm(place, { recursive: true, force: true });
      await rename(draft, place);
      const bytes = await sizeOf(place);
      this.#bytes += bytes - entry.bytes;
      entry.bytes = bytes;
    } catch (error) {
      entry.ready = undefined;
      await rm(draft, { recursive: true, force: true });
      throw error;
    }
  }

  async #isIntact(key: string): Promise<boolean> {
    const place = join(this.#directory, key);
    const sums = await readFile(join(place, 'sha256'), 'utf8').catch(ifMissing(''));
    const lines = await Promise.all(names.map(async (name) => `${await digestOf(join(place, name))}  ${name}\n`));
    const intact = lines.join('') === sums;
    if (!intact) this.#log.warn('A pack in the cache was damaged or removed. It is downloaded again.', { pack: key });
    return intact;
  }

  #open(): Promise<void> {
    this.#opened ??= this.#scan().catch((error: unknown) => {
      this.#opened = undefined;
      throw error;
    });
    return this.#opened;
  }

  /** Registers what an earlier process left, the oldest first. */
  async #scan(): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    const found: { key: string; bytes: number; at: number }[] = [];
    for (const repositoryId of await readdir(this.#directory)) {
      for (const name of await readdir(join(this.#directory, repositoryId)).catch(ifMissing([]))) {
        const [key, place] = [`${repositoryId}/${name}`, join(this.#directory, repositoryId, name)];
        if (name.endsWith(temporarySuffix)) await rm(place, { recursive: true, force: true });
        else found.push({ key, bytes: await sizeOf(place), at: (await stat(place)).mtimeMs });
      }
    }
    for (const { key, bytes } of found.sort((a, b) => a.at - b.at)) {
      this.#entries.set(key, { bytes, users: 0, ready: undefined });
      this.#bytes += bytes;
    }
    this.#trim();
  }
}

async function sizeOf(place: string): Promise<number> {
  const sizes = names.map(async (name) => (await stat(join(place, name)).catch(ifMissing({ size: 0 }))).size);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

async function digestOf(path: string): Promise<string> {
  const digest = createHash('sha256');
  try {
    for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 })) digest.update(chunk as Buffer);
  } catch (error) {
    ifMissing(undefined)(error);
    return 'missing';
  }
  return digest.digest('hex');
}
