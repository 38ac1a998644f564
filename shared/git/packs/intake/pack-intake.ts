import { createHash } from 'node:crypto';
import { writeSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { crc32, deflateSync } from 'node:zlib';
import { GitFault } from '#shared/git/git-fault.ts';
import type { TolerableFault } from '#shared/git/objects/tolerable-faults.ts';
import { encodeEntryHeader, encodePackHeader, packHeaderBytes, packTrailerBytes } from '#shared/git/packs/format/pack-entry.ts';
import { encodePackIndex } from '#shared/git/packs/format/pack-index.ts';
import { DeltaCache } from '#shared/git/packs/intake/delta-cache.ts';
import { DeltaResolver, largestDeltaWork } from '#shared/git/packs/intake/delta-resolver.ts';
import { LinkCheck } from '#shared/git/packs/intake/link-check.ts';
import { type PackLimits, PackScanner } from '#shared/git/packs/intake/pack-scanner.ts';
import { checkSpecialFiles } from '#shared/git/packs/intake/special-files.ts';
import { ObjectDatabase } from '#shared/git/packs/reading/object-database.ts';
import { OpenPack } from '#shared/git/packs/reading/open-pack.ts';
import { openBytes } from '#shared/git/packs/reading/random-access.ts';
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
 * @param stored the objects of the repository that the pack is for
 * @returns undefined for a pack without objects
 * @throws GitFault when the pack is invalid
 */
export async function intakePack(
  input: AsyncIterable<Uint8Array>,
  request: IntakeRequest,
  stored: ObjectDatabase,
  yieldToEventLoop: YieldToEventLoop,
): Promise<IntakeResult | undefined> {
  const links = new LinkCheck(request.withoutHistory !== true, new Set(request.tolerated));
  const addObject = (_entry: number, type: number, oid: Buffer, content: Buffer | undefined): void =>
    links.addObject(type, oid, content);
  const deltas = new DeltaCache();
  const scanner = new PackScanner(request.limits, deltas, addObject);
  const file = await open(request.packPath, 'wx+', 0o444);
  try {
    const received = await receive(input, scanner, file);
    const { entries } = scanner;
    // The disk writes while deltas are resolved. A failure is thrown below: the kernel reports it only once.
    const flushed = received >= largePackBytes ? file.datasync() : Promise.resolve();
    flushed.catch(() => undefined);
    if (entries.count === 0) return undefined;
    let packEnd = received - packTrailerBytes;
    let checksum = scanner.checksum ?? Buffer.alloc(0);

    const source = openBytes(request.packPath);
    const resolver = new DeltaResolver({
      entries,
      file: source,
      deltas,
      packEnd,
      limits: request.limits,
      onObject: addObject,
      yieldToEventLoop,
    });
    try {
      if (resolver.unresolved > 0) await resolver.resolveWithin();
      const sent = entries.count;
      if (resolver.unresolved > 0) packEnd = await appendBases(resolver, stored, scanner, file, packEnd);
      if (resolver.unresolved > 0) throw new GitFault(`the pack has ${resolver.unresolved} deltas without a base`);
      for (let base = sent; base < entries.count; base++) links.checkBase(entries.types[base] ?? 0, entries.oid(base));
      if (entries.count > sent) checksum = await seal(file, entries.count, packEnd, yieldToEventLoop);
    } finally {
      resolver.close();
      source.close();
    }
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
  const database = new ObjectDatabase([...stored.packs, received]);
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
    // Synchronous, like reading: handing each chunk to the thread pool would take longer than writing it.
    writeAll(file, chunk, position);
    position += chunk.length;
    if (scanner.done) return position;
  }
  throw new GitFault('the connection ended in the middle of the pack');
}

/** Appends the bases of a thin pack that only the repository has, in place of the trailer. Returns the new end. */
async function appendBases(
  resolver: DeltaResolver,
  stored: ObjectDatabase,
  scanner: PackScanner,
  file: FileHandle,
  packEnd: number,
): Promise<number> {
  const { entries } = scanner;
  let end = packEnd;
  for (const oid of resolver.missingBases()) {
    const base = stored.read(oid);
    if (base === undefined) continue;
    if (!(await resolver.resolveOnto(oid, base.type, () => base.data))) continue;
    const head = encodeEntryHeader(base.type, base.data.length);
    const bytes = Buffer.concat([head, deflateSync(base.data)]);
    writeAll(file, bytes, end);
    const entry = entries.add(end, base.type);
    entries.crcs[entry] = crc32(bytes);
    entries.setOid(entry, oid);
    end += bytes.length;
  }
  return end;
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

function writeAll(file: FileHandle, bytes: Uint8Array, position: number): void {
  for (let written = 0; written < bytes.length; )
    written += writeSync(file.fd, bytes, written, bytes.length - written, position + written);
}
