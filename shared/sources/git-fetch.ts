import { AppError } from '#shared/errors.ts';
import { GitFault } from '#shared/git/git-fault.ts';
import { ByteReader } from '#shared/git/protocol/byte-reader.ts';
import { delimiterPacket, encodePacket, flushPacket, packetText, readPacket } from '#shared/git/protocol/pkt-line.ts';
import { dataBand, progressBand } from '#shared/git/protocol/side-band.ts';
import type { ObjectId } from '#shared/ids.ts';

/** The client's side of gitprotocol-v2(5), whatever carries it. Messages are plans; nothing here sends anything. */

const agent = encodePacket('agent=paas\n');
const sha1 = encodePacket('object-format=sha1\n');
/** Lines of greeting or refs that are read at most. */
const mostLines = 10_000;
const errorBand = 3;

/** @throws AppError when the other side does not speak version 2 */
export async function readGreeting(reader: ByteReader): Promise<{ canShallow: boolean }> {
  const lines = await readLines(reader);
  // Smart HTTP puts its own line and a flush before.
  const greeting = lines[0]?.startsWith('# service=') === true ? await readLines(reader) : lines;
  if (greeting[0] !== 'version 2')
    throw notGit('it does not speak version 2 of the git protocol (git 2.18 and later do); over SSH it must accept GIT_PROTOCOL');
  if (greeting.some((line) => line === 'object-format=sha256')) throw notGit('repositories with SHA-256 ids are not supported');
  return { canShallow: greeting.some((line) => /^fetch=(.* )?shallow( |$)/.test(line)) };
}

export function encodeRefQuestion(ref: string): Uint8Array {
  return Buffer.concat([
    encodePacket('command=ls-refs\n'),
    agent,
    sha1,
    delimiterPacket,
    encodePacket(`ref-prefix ${ref}\n`),
    flushPacket,
  ]);
}

/** Undefined when there is no such ref. */
export async function readRefAnswer(reader: ByteReader, ref: string): Promise<ObjectId | undefined> {
  for (const line of await readLines(reader)) {
    const [oid = '', name] = line.split(' ');
    if (name === ref && /^[0-9a-f]{40}$/.test(oid)) return oid as ObjectId;
  }
  return undefined;
}

/** @param depth how many commits from the wanted one back; undefined: all */
export function encodeFetch(want: ObjectId, haves: readonly ObjectId[], depth?: number): Uint8Array {
  const deepen = depth === undefined ? [] : [`deepen ${depth}`];
  const asked = [`want ${want}`, ...deepen, ...haves.map((oid) => `have ${oid}`)];
  const lines = ['thin-pack', 'ofs-delta', 'no-progress', ...asked, 'done'];
  const packets = lines.map((line) => encodePacket(`${line}\n`));
  return Buffer.concat([encodePacket('command=fetch\n'), agent, sha1, delimiterPacket, ...packets, flushPacket]);
}

/** The bytes of the pack as they come. Rejects with an AppError when the other side refuses. */
export async function* readPack(reader: ByteReader): AsyncGenerator<Uint8Array> {
  try {
    for (;;) {
      const packet = await readPacket(reader);
      // What is said of the commits that are left out comes before the pack, with a delimiter behind it.
      if (packet === 'delimiter') continue;
      if (typeof packet === 'string') throw notGit('it sent no pack');
      const line = packetText(packet);
      if (line === 'packfile') break;
      refuseError(line);
    }
    for (;;) {
      const packet = await readPacket(reader);
      if (packet === 'end') throw notGit('the connection ended in the middle of the pack');
      if (typeof packet === 'string') return;
      const band = packet[0];
      if (band === dataBand) yield packet.subarray(1);
      else if (band === errorBand) throw notGit(`it said: ${printable(packetText(packet.subarray(1)))}`);
      else if (band !== progressBand && packet.length > 0) throw notGit('it mixed up the pack');
    }
  } catch (error) {
    throw error instanceof GitFault ? notGit(error.message) : error;
  }
}

async function readLines(reader: ByteReader): Promise<string[]> {
  const lines: string[] = [];
  try {
    for (;;) {
      const packet = await readPacket(reader);
      if (packet === 'flush' || packet === 'response-end') return lines;
      if (packet === 'end') throw notGit('the connection ended early');
      if (packet === 'delimiter') continue;
      const line = packetText(packet);
      refuseError(line);
      lines.push(line);
      if (lines.length > mostLines) throw notGit('it has too much to say');
    }
  } catch (error) {
    throw error instanceof GitFault ? notGit(error.message) : error;
  }
}

function refuseError(line: string): void {
  if (line.startsWith('ERR ')) throw notGit(`it said: ${printable(line.slice(4))}`);
}

function printable(text: string): string {
  return text
    .replace(/[^\x20-\x7e]+/g, ' ')
    .trim()
    .slice(0, 300);
}

function notGit(what: string): AppError {
  return new AppError('validation_failed', `The git host could not be fetched from: ${what.replace(/\.$/, '')}.`);
}
