import { createHash } from 'node:crypto';
import { createReadStream, renameSync } from 'node:fs';
import { link, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ifMissing } from '#shared/files/if-missing.ts';
import type { FinishedPack } from '#shared/git/packs/files/pack-files.ts';
import type { Log } from '#shared/log.ts';

/** SHA-256 of each file of a pack, in hexadecimal. */
export interface PackDigests {
  pack: string;
  idx: string;
  links: string;
}

/** A pack in the cache, which stays there until `release`. */
export interface HeldPack {
  paths: FinishedPack;
  release(): void;
}

export interface PackCacheOptions {
  /** Of this process alone: holds `<repository_id>/<pack_id>/` with `pack`, `idx`, `links` and `sha256`, which names their sums. */
  directory: string;
  /** What may stay. What is held at a time stays, too. */
  bytes: number;
  log: Log;
}

interface Entry {
  bytes: number;
  holders: number;
  /** The pack is there, whole; undefined when that is not known. */
  ready: Promise<void> | undefined;
}

const names = ['pack', 'idx', 'links'] as const;
/** Directories that are being filled or thrown away; whatever has such a name at a start is rubbish. */
const passing = '.part';

/** Packs of a remote store on local disk: brought once, kept while there is room, least recently used ones dropped first. */
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
   * Whoever asks while a pack is on its way waits for the same. What an earlier process left is held against its sums before
   * it is used.
   *
   * @param key `<repository_id>/<pack_id>`
   * @param bring writes the three files into a directory; what it throws, everybody who waits gets
   */
  async hold(key: string, bring: (directory: string) => Promise<PackDigests>): Promise<HeldPack> {
    await this.#open();
    const entry = this.#entries.get(key) ?? { bytes: 0, holders: 0, ready: undefined };
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    entry.holders++;
    try {
      for (let again = false; ; again = true) {
        const ready = (entry.ready ??= this.#prepare(key, entry, bring));
        await ready;
        if (again || (await this.#isThere(key))) break;
        // Somebody cleared the directory: the first to notice has it brought again.
        if (entry.ready === ready) entry.ready = undefined;
      }
    } catch (error) {
      this.#release(key, entry);
      throw error;
    }
    let held = true;
    return {
      paths: this.#paths(key),
      release: () => {
        if (held) this.#release(key, entry);
        held = false;
      },
    };
  }

  /** Puts in a pack that was stored just now, by links to its files. Where the file system has none it is brought when needed. */
  async add(key: string, { packPath, indexPath, linksPath }: FinishedPack, digests: PackDigests): Promise<void> {
    await this.#open();
    if (this.#entries.has(key)) return;
    const entry: Entry = { bytes: 0, holders: 0, ready: undefined };
    this.#entries.set(key, entry);
    const added = this.#bring(key, entry, async (directory) => {
      await link(packPath, join(directory, 'pack'));
      await link(indexPath, join(directory, 'idx'));
      await link(linksPath, join(directory, 'links'));
      return digests;
    }).catch((error: unknown) => this.#log.debug('a pack was not put into the cache', { pack: key, error }));
    // Whoever asks for it meanwhile waits for this; where it failed they find nothing, and bring it.
    entry.ready = added;
    entry.holders++;
    await added;
    this.#release(key, entry);
  }

  /** Drops a pack that is gone from the store, unless it is being read. */
  async forget(key: string): Promise<void> {
    await this.#open();
    const entry = this.#entries.get(key);
    if (entry?.holders === 0) await this.#drop(key, entry);
  }

  #paths(key: string): FinishedPack {
    const place = join(this.#directory, key);
    return { packPath: join(place, 'pack'), indexPath: join(place, 'idx'), linksPath: join(place, 'links') };
  }

  #release(key: string, entry: Entry): void {
    entry.holders--;
    if (entry.ready === undefined && entry.holders === 0 && entry.bytes === 0) this.#entries.delete(key);
    this.#trim();
  }

  #trim(): void {
    for (const [key, entry] of this.#entries) {
      if (this.#bytes <= this.#mostBytes) return;
      if (entry.holders > 0 || entry.bytes === 0) continue;
      void this.#drop(key, entry).catch((error: unknown) => {
        this.#log.warn('A pack could not be dropped from the cache.', { pack: key, error });
      });
    }
  }

  /** Moved away at once, in the turn that forgets it: whoever asks next brings it anew, to a place that is free. */
  async #drop(key: string, entry: Entry): Promise<void> {
    this.#entries.delete(key);
    this.#bytes -= entry.bytes;
    entry.bytes = 0;
    const dropped = this.#passingName(key);
    try {
      renameSync(join(this.#directory, key), dropped);
    } catch (error) {
      ifMissing(undefined)(error);
    }
    await rm(dropped, { recursive: true, force: true });
  }

  #passingName(key: string): string {
    return join(this.#directory, `${key}.${crypto.randomUUID()}${passing}`);
  }

  async #isThere(key: string): Promise<boolean> {
    const found = await stat(join(this.#directory, key, 'idx')).catch(ifMissing(undefined));
    return found !== undefined;
  }

  async #prepare(key: string, entry: Entry, bring: (directory: string) => Promise<PackDigests>): Promise<void> {
    try {
      if (entry.bytes > 0 && (await this.#isSound(key))) return;
    } catch (error) {
      entry.ready = undefined;
      throw error;
    }
    await this.#bring(key, entry, bring);
  }

  async #bring(key: string, entry: Entry, bring: (directory: string) => Promise<PackDigests>): Promise<void> {
    const [place, draft] = [join(this.#directory, key), this.#passingName(key)];
    try {
      await mkdir(draft, { recursive: true, mode: 0o700 });
      const digests = await bring(draft);
      await writeFile(join(draft, 'sha256'), names.map((name) => `${digests[name]}  ${name}\n`).join(''));
      // What is there was found unsound.
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

  async #isSound(key: string): Promise<boolean> {
    const place = join(this.#directory, key);
    const sums = await readFile(join(place, 'sha256'), 'utf8').catch(ifMissing(''));
    const lines = await Promise.all(names.map(async (name) => `${await digestOf(join(place, name))}  ${name}\n`));
    const sound = lines.join('') === sums;
    if (!sound) this.#log.warn('A pack in the cache was damaged or removed; it is brought again.', { pack: key });
    return sound;
  }

  #open(): Promise<void> {
    this.#opened ??= this.#scan().catch((error: unknown) => {
      this.#opened = undefined;
      throw error;
    });
    return this.#opened;
  }

  /** What an earlier process left, oldest first. */
  async #scan(): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    const found: { key: string; bytes: number; at: number }[] = [];
    for (const repositoryId of await readdir(this.#directory)) {
      for (const name of await readdir(join(this.#directory, repositoryId)).catch(ifMissing([]))) {
        const [key, place] = [`${repositoryId}/${name}`, join(this.#directory, repositoryId, name)];
        if (name.endsWith(passing)) await rm(place, { recursive: true, force: true });
        else found.push({ key, bytes: await sizeOf(place), at: (await stat(place)).mtimeMs });
      }
    }
    for (const { key, bytes } of found.sort((a, b) => a.at - b.at)) {
      this.#entries.set(key, { bytes, holders: 0, ready: undefined });
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
