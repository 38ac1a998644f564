import { GitFault } from '#shared/git/git-fault.ts';
import type { ByteReader } from '#shared/git/protocol/byte-reader.ts';
import { encodePacket, flushPacket, packetText, readPacket } from '#shared/git/protocol/pkt-line.ts';
import type { Ref, RefChange } from '#shared/git/repository.ts';
import type { ObjectId } from '#shared/ids.ts';

/** What the client asked for, before its pack (gitprotocol-pack(5), "Reference Update Request"). */
export interface PushAsked {
  changes: readonly RefChange[];
  pushOptions: readonly string[];
  /** The client's history is cut off at these. */
  shallow: readonly ObjectId[];
  atomic: boolean;
  reportStatus: boolean;
  sideBand: boolean;
}

const nullOid = '0'.repeat(40);
const capabilities =
  'report-status report-status-v2 delete-refs side-band-64k quiet atomic ofs-delta object-format=sha1 push-options agent=paas';
const commandPattern = /^([0-9a-f]{40}) ([0-9a-f]{40}) ([^\0]+)$/;
const commandBytes = 4 * 1024 * 1024;
const pushOptionBytes = 64 * 1024;

export function advertiseForPush(refs: readonly Ref[]): Buffer {
  const lines = refs.length === 0 ? [`${nullOid} capabilities^{}`] : refs.map(({ oid, name }) => `${oid} ${name}`);
  const packets = lines.map((line, i) => encodePacket(i === 0 ? `${line}\0${capabilities}\n` : `${line}\n`));
  return Buffer.concat([...packets, flushPacket]);
}

/**
 * Undefined when the client wants nothing.
 * @throws GitFault when it does not speak the protocol, or asks for more than `limit` changes
 */
export async function readPush(reader: ByteReader, limit: number): Promise<PushAsked | undefined> {
  const changes: RefChange[] = [];
  const shallow: ObjectId[] = [];
  let offered = new Set<string>();
  let bytes = 0;
  for (;;) {
    const packet = await readPacket(reader);
    if (packet === 'end' || packet === 'flush') break;
    if (typeof packet === 'string') throw new GitFault(`a ${packet} packet does not belong here`);
    bytes += packet.length;
    if (changes.length >= limit || bytes > commandBytes)
      throw new GitFault(`a push may change ${limit} refs at most; push them in parts`);
    const [line = '', announced] = packetText(packet).split('\0', 2);
    if (announced !== undefined) offered = new Set(announced.trim().split(' '));
    if (line.startsWith('shallow ')) shallow.push(parseShallow(line));
    else changes.push(parseCommand(line));
  }
  if (changes.length === 0) return undefined;
  const names = new Set(changes.map(({ name }) => name));
  if (names.size < changes.length) throw new GitFault('a push may name each ref once');
  if (offered.has('object-format=sha256')) throw new GitFault('this repository uses SHA-1, yours SHA-256');
  return {
    changes,
    shallow,
    pushOptions: offered.has('push-options') ? await readPushOptions(reader) : [],
    atomic: offered.has('atomic'),
    reportStatus: offered.has('report-status') || offered.has('report-status-v2'),
    sideBand: offered.has('side-band-64k'),
  };
}

function parseShallow(line: string): ObjectId {
  const [, oid] = /^shallow ([0-9a-f]{40})$/.exec(line) ?? [];
  if (oid === undefined) throw new GitFault('a shallow line of the push names no object');
  return oid as ObjectId;
}

function parseCommand(line: string): RefChange {
  const [, from, to, name] = commandPattern.exec(line) ?? [];
  if (from === undefined || to === undefined || name === undefined) throw new GitFault('a command of the push is malformed');
  const oid = (hex: string): ObjectId | undefined => (hex === nullOid ? undefined : (hex as ObjectId));
  return { name, oldOid: oid(from), newOid: oid(to) };
}

async function readPushOptions(reader: ByteReader): Promise<string[]> {
  const options: string[] = [];
  let bytes = 0;
  for (;;) {
    const packet = await readPacket(reader);
    if (packet === 'end' || packet === 'flush') return options;
    if (typeof packet === 'string') throw new GitFault(`a ${packet} packet does not belong here`);
    // An option without content costs memory too.
    bytes += packet.length + 4;
    if (bytes > pushOptionBytes) throw new GitFault('the push options are too long');
    options.push(packetText(packet));
  }
}

/** The body of a report: what became of the pack, and of each ref (gitprotocol-pack(5), "Report Status"). */
export function encodeReport(unpack: string, results: readonly { name: string; reason: string | undefined }[]): Buffer {
  const lines = results.map(({ name, reason }) => (reason === undefined ? `ok ${name}\n` : `ng ${name} ${oneLine(reason)}\n`));
  return Buffer.concat([encodePacket(`unpack ${oneLine(unpack)}\n`), ...lines.map(encodePacket), flushPacket]);
}

function oneLine(text: string): string {
  return text.replace(/[\0-\x1f]+/g, ' ').slice(0, 1000);
}
