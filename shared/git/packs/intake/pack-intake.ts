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

export interface IntakeRequest {
  /** Paths of files to make. */
  packPath: string;
  indexPath: string;
  linksPath: string;
  limits: PackLimits;
  /** Commits are taken without those before them: what comes in can then be no part of a repository. */
  withoutHistory?: true;
  /** Faults of objects that are let through. */
  tolerated?: readonly TolerableFault[];
}

export interface IntakeResult {
  /** The trailing checksum in hexadecimal. */
  packId: string;
  objectCount: number;
  /** Of the pack file. */
  bytes: number;
  /** What is odd about objects, a line each, as git words it. */
  warnings: readonly string[];
}

/** From here on it pays to have the disk begin early; below, it would only be asked twice. */
const largePackBytes = 8 * 1024 * 1024;

/**
 * Receives a pack: writes it to a file while it arrives, checks every object and that nothing they need is missing,
 * completes a thin pack with the bases it lacks, writes the index, and brings both files to stable storage.
 *
 * @param stored the objects of the repository it is for
 * @returns undefined for a pack without objects
 * @throws GitFault when the pack is not sound
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
    // The disk writes while deltas are resolved. A failure is told below: the kernel tells of it only once.
    const begun = received >= largePackBytes ? file.datasync() : Promise.resolve();
    begun.catch(() => undefined);
    if (entries.count === 0) return undefined;
    let packEnd = received - packTrailerBytes;
    let checksum = scanner.checksum ?? Buffer.alloc(0);

    const source = openBytes(request.packPath);
    const resolver = new DeltaResolver(entries, source, deltas, packEnd, request.limits, addObject, yieldToEventLoop);
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
      begun.then(() => file.datasync()),
      writeNew(request.linksPath, Buffer.from(JSON.stringify(links.packLinks() ?? null))),
      writeNew(request.indexPath, encodePackIndex(entries, checksum)),
    ]);
    await checkNamedContent(links, request, stored, largestDeltaWork(packEnd), yieldToEventLoop);
    const bytes = packEnd + packTrailerBytes;
    return { packId: checksum.toString('hex'), objectCount: entries.count, bytes, warnings: links.warnings.lines() };
  } finally {
    scanner.close();
    deltas.close();
    await file.close();
  }
}

/** Most packs bring no such file: then nothing is read again. */
async function checkNamedContent(
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
    // Synchronous like reading: a turn of the thread pool for each piece would cost more than the writing itself.
    writeAll(file, chunk, position);
    position += chunk.length;
    if (scanner.done) return position;
  }
  throw new GitFault('the connection ended in the middle of the pack');
}

/** A thin pack names bases that only the repository has. They are put at the end of it, in place of the trailer. */
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

/** Gives a pack that has grown its new count and checksum. */
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
