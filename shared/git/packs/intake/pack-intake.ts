import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { GitFault } from '#shared/git/git-fault.ts';
import type { TolerableFault } from '#shared/git/objects/tolerable-faults.ts';
import { encodePackHeader, packHeaderBytes, packTrailerBytes } from '#shared/git/packs/format/pack-entry.ts';
import { encodePackIndex } from '#shared/git/packs/format/pack-index.ts';
import { DeltaCache } from '#shared/git/packs/intake/delta-cache.ts';
import { largestDeltaWork } from '#shared/git/packs/intake/delta-resolver.ts';
import { LinkCheck } from '#shared/git/packs/intake/link-check.ts';
import { nativeIndexer } from '#shared/git/packs/intake/native-indexer.ts';
import type { PackIndexer } from '#shared/git/packs/intake/pack-indexer.ts';
import { type PackLimits, PackScanner } from '#shared/git/packs/intake/pack-scanner.ts';
import { checkSpecialFiles } from '#shared/git/packs/intake/special-files.ts';
import { writeAll } from '#shared/git/packs/intake/write-all.ts';
import { ObjectDatabase } from '#shared/git/packs/reading/object-database.ts';
import { OpenPack } from '#shared/git/packs/reading/open-pack.ts';
import type { YieldToEventLoop } from '#shared/git/yield-to-event-loop.ts';

/** How to receive a pack. Plain data, which can be sent to a thread. */
export interface IntakeRequest {
  /** Paths of the files to create. */
  packPath: string;
  indexPath: string;
  linksPath: string;
  limits: PackLimits;
  /** Commits are received without their parents. Such a pack cannot become part of a repository. */
  withoutHistory?: true;
  /** Faults that objects may have. */
  tolerated?: readonly TolerableFault[];
}

/** A pack that was received. */
export interface IntakeResult {
  /** The pack's trailing checksum in hexadecimal. */
  packId: string;
  objectCount: number;
  /** Size of the pack file. */
  bytes: number;
  /** Warnings about objects, one line each, in the words of git. */
  warnings: readonly string[];
}

/** From this size on, the disk begins to write early. For smaller packs a second call would only cost time. */
const largePackBytes = 8 * 1024 * 1024;

/**
 * Receives a pack: writes it to a file while it arrives, checks every object and that no object they refer to is missing,
 * appends the bases that a thin pack lacks, writes the index, and flushes the files to stable storage.
 *
 * @param stored the objects of the repository that the pack is for. Has the inflater of the indexer
 * @returns undefined for a pack without objects
 * @throws GitFault when the pack is invalid
 */
export async function intakePack(
  input: AsyncIterable<Uint8Array>,
  request: IntakeRequest,
  stored: ObjectDatabase,
  yieldToEventLoop: YieldToEventLoop,
  indexer: PackIndexer = nativeIndexer,
): Promise<IntakeResult | undefined> {
  const links = new LinkCheck(request.withoutHistory !== true, new Set(request.tolerated));
  const addObject = (_entry: number, type: number, oid: Buffer, content: Buffer | undefined): void =>
    links.addObject(type, oid, content);
  const deltas = new DeltaCache();
  const scanner = new PackScanner(request.limits, deltas, addObject, indexer.openInflater);
  const file = await open(request.packPath, 'wx+', 0o444);
  try {
    const received = await receive(input, scanner, file);
    const { entries } = scanner;
    // The disk writes while deltas are resolved. A failure is thrown below: the kernel reports it only once.
    const flushed = received >= largePackBytes ? file.datasync() : Promise.resolve();
    flushed.catch(() => undefined);
    if (entries.count === 0) return undefined;
    const sent = entries.count;
    const { packPath, limits } = request;
    const packEnd = await indexer.indexDeltas({
      entries,
      deltas,
      packPath,
      file,
      packEnd: received - packTrailerBytes,
      limits,
      stored,
      onObject: addObject,
      yieldToEventLoop,
    });
    for (let base = sent; base < entries.count; base++) links.checkBase(entries.types[base] ?? 0, entries.oid(base));
    const checksum =
      entries.count > sent ? await seal(file, entries.count, packEnd, yieldToEventLoop) : (scanner.checksum ?? Buffer.alloc(0));
    await links.finish((oid) => stored.readType(oid), yieldToEventLoop);
    await Promise.all([
      flushed.then(() => file.datasync()),
      writeNew(request.linksPath, Buffer.from(JSON.stringify(links.packLinks() ?? null))),
      writeNew(request.indexPath, encodePackIndex(entries, checksum)),
    ]);
    await checkSpecialFilesOf(links, request, stored, largestDeltaWork(packEnd), yieldToEventLoop);
    const bytes = packEnd + packTrailerBytes;
    return { packId: checksum.toString('hex'), objectCount: entries.count, bytes, warnings: links.warnings.lines() };
  } finally {
    scanner.close();
    deltas.close();
    await file.close();
  }
}

/** Most packs have no special files: then nothing is read again. */
async function checkSpecialFilesOf(
  links: LinkCheck,
  request: IntakeRequest,
  stored: ObjectDatabase,
  largestWork: number,
  yieldToEventLoop: YieldToEventLoop,
): Promise<void> {
  if (!links.hasSpecialFiles) return;
  const { packPath, indexPath, linksPath } = request;
  const received = new OpenPack({ key: packPath, pack: packPath, index: indexPath, links: linksPath });
  const database = new ObjectDatabase([...stored.packs, received], stored.openInflater);
  try {
    await checkSpecialFiles(links.specialFiles(), database, largestWork, yieldToEventLoop, links.warnings);
  } finally {
    database.close();
    received.close();
  }
}

async function receive(input: AsyncIterable<Uint8Array>, scanner: PackScanner, file: FileHandle): Promise<number> {
  let position = 0;
  for await (const chunk of input) {
    scanner.push(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    writeAll(file, chunk, position);
    position += chunk.length;
    if (scanner.done) return position;
  }
  throw new GitFault('the connection ended in the middle of the pack');
}

/** Writes the new object count and checksum of a pack that has grown. */
async function seal(file: FileHandle, objectCount: number, packEnd: number, yieldToEventLoop: YieldToEventLoop): Promise<Buffer> {
  writeAll(file, encodePackHeader(objectCount), 0);
  const hash = createHash('sha1').update(encodePackHeader(objectCount));
  const piece = Buffer.allocUnsafe(256 * 1024);
  for (let position = packHeaderBytes; position < packEnd; ) {
    const { bytesRead } = await file.read(piece, 0, Math.min(piece.length, packEnd - position), position);
    if (bytesRead === 0) throw new Error('a pack file in quarantine has changed');
    hash.update(piece.subarray(0, bytesRead));
    position += bytesRead;
    const pause = yieldToEventLoop();
    if (pause !== undefined) await pause;
  }
  const checksum = hash.digest();
  writeAll(file, checksum, packEnd);
  return checksum;
}

async function writeNew(path: string, bytes: Buffer): Promise<void> {
  const file = await open(path, 'wx', 0o444);
  try {
    writeAll(file, bytes, 0);
    await file.datasync();
  } finally {
    await file.close();
  }
}
