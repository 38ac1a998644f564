import { GitFault } from '#shared/git/git-fault.ts';
import type { Ref, RefChange } from '#shared/git/git-storage.ts';
import type { ByteReader } from '#shared/git/protocol/byte-reader.ts';
import { encodePacket, flushPacket, packetText, readPacket } from '#shared/git/protocol/pkt-line.ts';
import { writePackets } from '#shared/git/protocol/write-packets.ts';
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
const commandBytes = 16 * 1024 * 1024;
/** One for each place where the client's history ends. */
const mostShallow = 100_000;
const pushOptionBytes = 64 * 1024;

export async function advertiseForPush(refs: readonly Ref[], write: (bytes: Uint8Array) => Promise<void>): Promise<void> {
  const lines = refs.length === 0 ? [`${nullOid} capabilities^{}`] : refs.map(({ oid, name }) => `${oid} ${name}`);
  await writePackets(
    write,
    lines.map((line, i) => (i === 0 ? `${line}\0${capabilities}\n` : `${line}\n`)),
  );
}

/** What the client asked for cannot be served. */
export class UnreadablePush extends GitFault {
  /** It reads our answers in side bands only. */
  readonly sideBand: boolean;
  /** All that comes before the pack was read. */
  readonly packFollows: boolean;

  constructor(message: string, sideBand: boolean, packFollows: boolean) {
    super(message);
    this.sideBand = sideBand;
    this.packFollows = packFollows;
  }
}

/**
 * Undefined when the client wants nothing.
 * @throws UnreadablePush when it does not speak the protocol, or asks for more than `limit` changes
 */
export async function readPush(reader: ByteReader, limit: number): Promise<PushAsked | undefined> {
  const offered = new Set<string>();
  const progress = { packFollows: false };
  try {
    return await readRequest(reader, limit, offered, progress);
  } catch (error) {
    if (!(error instanceof GitFault)) throw error;
    throw new UnreadablePush(error.message, offered.has('side-band-64k'), progress.packFollows);
  }
}

/** @param offered capabilities of the client, once they have arrived */
async function readRequest(
  reader: ByteReader,
  limit: number,
  offered: Set<string>,
  progress: { packFollows: boolean },
): Promise<PushAsked | undefined> {
  const changes: RefChange[] = [];
  const shallow: ObjectId[] = [];
  let commands = 0;
  let bytes = 0;
  for (;;) {
    const packet = await readPacket(reader);
    if (packet === 'end' || packet === 'flush') break;
    if (typeof packet === 'string') throw new GitFault(`a ${packet} packet does not belong here`);
    bytes += packet.length;
    if (bytes > commandBytes) throw new GitFault('the commands of the push are too long');
    const [line = '', announced] = packetText(packet).split('\0', 2);
    for (const capability of announced?.trim().split(' ') ?? []) offered.add(capability);
    // All are counted, so that the answer comes when it is read; no more are held than can be served.
    if (line.startsWith('shallow ')) {
      if (shallow.length < mostShallow) shallow.push(parseShallow(line));
    } else if (++commands <= limit) changes.push(parseCommand(line));
  }
  const pushOptions = offered.has('push-options') && commands > 0 ? await readPushOptions(reader) : [];
  progress.packFollows = true;
  if (commands > limit) throw new GitFault(tooManyRefs(commands, limit));
  if (changes.length === 0) return undefined;
  const names = new Set(changes.map(({ name }) => name));
  if (names.size < changes.length) throw new GitFault('a push may name each ref once');
  if (offered.has('object-format=sha256')) throw new GitFault('this repository uses SHA-1, yours SHA-256');
  return {
    changes,
    shallow,
    pushOptions,
    atomic: offered.has('atomic'),
    reportStatus: offered.has('report-status') || offered.has('report-status-v2'),
    sideBand: offered.has('side-band-64k'),
  };
}

function tooManyRefs(commands: number, limit: number): string {
  return (
    `this push changes ${commands} refs, and ${limit} is the most at once. Push branches and tags in parts, as ` +
    "git push <remote> 'refs/heads/*' and git push <remote> 'refs/tags/v1*'; what else a mirror has (refs/pull/*) is not kept here"
  );
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
