import { ByteReader } from '#shared/byte-reader.ts';
import { AppError } from '#shared/errors.ts';
import { GitFault } from '#shared/git/git-fault.ts';
import { delimiterPacket, encodePacket, flushPacket, packetText, readPacket } from '#shared/git/protocol/pkt-line.ts';
import { dataBand, progressBand } from '#shared/git/protocol/side-band.ts';
import type { ObjectId } from '#shared/ids.ts';
import { branchPrefix, isObjectId, tipsOf } from '#shared/sources/remote-tips.ts';
import type { RemoteTips } from '#shared/sources/source-hosts.ts';

/** The client side of gitprotocol-v2(5), independent of the transport: encodes requests and reads responses. */

const agent = encodePacket('agent=paas\n');
const sha1 = encodePacket('object-format=sha1\n');
/** Largest number of lines in a greeting or a list of refs, and of their bytes together: a line can have 64 KiB. */
const mostLines = 10_000;
const mostBytes = 4 * 1024 * 1024;
const errorBand = 3;
const symrefPrefix = 'symref-target:';

/** Reads the server's capabilities. @throws AppError validation_failed if it does not speak version 2 */
export async function readGreeting(reader: ByteReader): Promise<{ canShallow: boolean }> {
  const lines = await readLines(reader);
  // Smart HTTP sends a line of its own and a flush first.
  const greeting = lines[0]?.startsWith('# service=') === true ? await readLines(reader) : lines;
  if (greeting[0] !== 'version 2')
    throw notGit('it does not speak version 2 of the git protocol (git 2.18 and later do); over SSH it must accept GIT_PROTOCOL');
  if (greeting.some((line) => line === 'object-format=sha256')) throw notGit('repositories with SHA-256 ids are not supported');
  return { canShallow: greeting.some((line) => /^fetch=(.* )?shallow( |$)/.test(line)) };
}

/** The `ls-refs` command for one ref. */
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

/** Reads the answer to `encodeRefQuestion`. Undefined if the ref does not exist. */
export async function readRefAnswer(reader: ByteReader, ref: string): Promise<ObjectId | undefined> {
  for (const line of await readLines(reader)) {
    const [oid = '', name] = line.split(' ');
    if (name === ref && isObjectId(oid)) return oid;
  }
  return undefined;
}

/** The `ls-refs` command for all branches, and for the branch that HEAD names. */
export const tipsQuestion: Uint8Array = Buffer.concat([
  encodePacket('command=ls-refs\n'),
  agent,
  sha1,
  delimiterPacket,
  encodePacket('symrefs\n'),
  encodePacket('ref-prefix HEAD\n'),
  encodePacket(`ref-prefix ${branchPrefix}\n`),
  flushPacket,
]);

/** Reads the answer to `tipsQuestion`. */
export async function readTipsAnswer(reader: ByteReader): Promise<RemoteTips> {
  const lines = await readLines(reader);
  return tipsOf(
    lines.map((line) => {
      const [oid = '', name = '', ...attributes] = line.split(' ');
      const symref = attributes.find((attribute) => attribute.startsWith(symrefPrefix));
      return { name, oid, target: symref?.slice(symrefPrefix.length) };
    }),
  );
}

/** The `fetch` command for one commit. @param depth number of commits to fetch, counted from the wanted one; undefined: all */
export function encodeFetch(want: ObjectId, haves: readonly ObjectId[], depth?: number): Uint8Array {
  const deepen = depth === undefined ? [] : [`deepen ${depth}`];
  const asked = [`want ${want}`, ...deepen, ...haves.map((oid) => `have ${oid}`)];
  const lines = ['thin-pack', 'ofs-delta', 'no-progress', ...asked, 'done'];
  const packets = lines.map((line) => encodePacket(`${line}\n`));
  return Buffer.concat([encodePacket('command=fetch\n'), agent, sha1, delimiterPacket, ...packets, flushPacket]);
}

/** Yields the bytes of the pack as they arrive. @throws AppError validation_failed if the server refuses */
export async function* readPack(reader: ByteReader): AsyncGenerator<Uint8Array> {
  try {
    for (;;) {
      const packet = await readPacket(reader);
      // Sections about shallow commits come before the pack, each followed by a delimiter.
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
      else if (band === errorBand) throw notGit(`it answered: ${printable(packetText(packet.subarray(1)))}`);
      else if (band !== progressBand && packet.length > 0) throw notGit('it sent a malformed pack');
    }
  } catch (error) {
    throw error instanceof GitFault ? notGit(error.message) : error;
  }
}

async function readLines(reader: ByteReader): Promise<string[]> {
  const lines: string[] = [];
  let bytes = 0;
  try {
    for (;;) {
      const packet = await readPacket(reader);
      if (packet === 'flush' || packet === 'response-end') return lines;
      if (packet === 'end') throw notGit('the connection ended early');
      if (packet === 'delimiter') continue;
      const line = packetText(packet);
      refuseError(line);
      lines.push(line);
      bytes += packet.length;
      if (lines.length > mostLines || bytes > mostBytes) throw notGit('its answer is too long');
    }
  } catch (error) {
    throw error instanceof GitFault ? notGit(error.message) : error;
  }
}

function refuseError(line: string): void {
  if (line.startsWith('ERR ')) throw notGit(`it answered: ${printable(line.slice(4))}`);
}

function printable(text: string): string {
  return text
    .replace(/[^\x20-\x7e]+/g, ' ')
    .trim()
    .slice(0, 300);
}

function notGit(what: string): AppError {
  return new AppError('validation_failed', `Fetching from the git host failed: ${what.replace(/\.$/, '')}.`);
}
