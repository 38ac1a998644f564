import type { ByteReader } from '#shared/byte-reader.ts';
import { GitFault } from '#shared/git/git-fault.ts';
import type { Ref, RefChange } from '#shared/git/git-storage.ts';
import { encodePacket, endedEarly, flushPacket, packetText, readPacket } from '#shared/git/protocol/pkt-line.ts';
import { writePackets } from '#shared/git/protocol/write-packets.ts';
import type { ObjectId } from '#shared/ids.ts';

/** What the client sends before its pack (gitprotocol-pack(5), "Reference Update Request"). */
export interface ReceivePackRequest {
  changes: readonly RefChange[];
  pushOptions: readonly string[];
  /** Commits at which the client's history ends. */
  shallow: readonly ObjectId[];
  atomic: boolean;
  reportStatus: boolean;
  sideBand: boolean;
}

const nullOid = '0'.repeat(40);
const capabilities =
  'report-status report-status-v2 delete-refs side-band-64k quiet atomic ofs-delta object-format=sha1 push-options agent=paas';
const commandPattern = /^([0-9a-f]{40}) ([0-9a-f]{40}) ([^\0]+)$/;
/** Far more than a name may have (`refNameProblem`), and short enough for the packet that reports on it. */
const mostNameCharacters = 10_000;
const mostCommandBytes = 16 * 1024 * 1024;
const mostShallow = 100_000;
const mostPushOptionBytes = 64 * 1024;

/** Lists the refs and what the server can do. */
export async function advertiseRefs(refs: readonly Ref[], write: (bytes: Uint8Array) => Promise<void>): Promise<void> {
  const lines = refs.length === 0 ? [`${nullOid} capabilities^{}`] : refs.map(({ oid, name }) => `${oid} ${name}`);
  await writePackets(
    write,
    lines.map((line, i) => (i === 0 ? `${line}\0${capabilities}\n` : `${line}\n`)),
  );
}

/** The request cannot be served. How to answer depends on how far it was read. */
export class InvalidReceivePackRequest extends GitFault {
  /** The client reads answers in side bands only. */
  readonly sideBand: boolean;
  /** Everything before the pack was read: the pack comes next. */
  readonly packFollows: boolean;

  constructor(message: string, sideBand: boolean, packFollows: boolean) {
    super(message);
    this.sideBand = sideBand;
    this.packFollows = packFollows;
  }
}

/**
 * Reads everything before the pack. Undefined when the client wants nothing.
 * @throws InvalidReceivePackRequest when it breaks the protocol, or asks for more than `limit` changes
 */
export async function readReceivePackRequest(reader: ByteReader, limit: number): Promise<ReceivePackRequest | undefined> {
  const offered = new Set<string>();
  const progress = { packFollows: false };
  try {
    return await readRequest(reader, limit, offered, progress);
  } catch (error) {
    if (!(error instanceof GitFault)) throw error;
    throw new InvalidReceivePackRequest(error.message, offered.has('side-band-64k'), progress.packFollows);
  }
}

/**
 * @param offered gets the client's capabilities
 * @param progress gets how far the request was read
 */
async function readRequest(
  reader: ByteReader,
  limit: number,
  offered: Set<string>,
  progress: { packFollows: boolean },
): Promise<ReceivePackRequest | undefined> {
  const changes: RefChange[] = [];
  const shallow: ObjectId[] = [];
  let commands = 0;
  let bytes = 0;
  for (;;) {
    const packet = await readPacket(reader);
    if (packet === 'flush') break;
    if (packet === 'end') {
      // A client that needs to change nothing may disconnect instead of saying so.
      if (bytes === 0) return undefined;
      throw endedEarly();
    }
    if (typeof packet === 'string') throw new GitFault(`unexpected ${packet} packet`);
    bytes += packet.length;
    if (bytes > mostCommandBytes) throw new GitFault('the commands of the push are too long');
    const [line = '', announced] = packetText(packet).split('\0', 2);
    for (const capability of announced?.trim().split(' ') ?? []) offered.add(capability);
    // All lines are read and counted, because a client reads the answer only after it has sent them. Few are kept.
    if (line.startsWith('shallow ')) {
      if (shallow.length < mostShallow) shallow.push(parseShallow(line));
    } else if (++commands <= limit) changes.push(parseCommand(line));
  }
  const pushOptions = offered.has('push-options') && commands > 0 ? await readPushOptions(reader) : [];
  progress.packFollows = true;
  if (commands > limit) throw new GitFault(tooManyRefs(commands, limit));
  if (changes.length === 0) return undefined;
  const names = new Set(changes.map(({ name }) => name));
  if (names.size < changes.length) throw new GitFault('a push must not name a ref twice');
  if (offered.has('object-format=sha256')) throw new GitFault('this repository uses SHA-1, and yours uses SHA-256');
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
    "git push <remote> 'refs/heads/*' and git push <remote> 'refs/tags/v1*'; other refs of a mirror (refs/pull/*) are not accepted"
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
  if (name.length > mostNameCharacters) throw new GitFault('a command of the push has a name of a ref that is far too long');
  const oid = (hex: string): ObjectId | undefined => (hex === nullOid ? undefined : (hex as ObjectId));
  return { name, oldOid: oid(from), newOid: oid(to) };
}

async function readPushOptions(reader: ByteReader): Promise<string[]> {
  const options: string[] = [];
  let bytes = 0;
  for (;;) {
    const packet = await readPacket(reader);
    if (packet === 'flush') return options;
    if (packet === 'end') throw endedEarly();
    if (typeof packet === 'string') throw new GitFault(`unexpected ${packet} packet`);
    // An empty option costs memory too.
    bytes += packet.length + 4;
    if (bytes > mostPushOptionBytes) throw new GitFault('the push options are too long');
    options.push(packetText(packet));
  }
}

/** The report on the pack and on each ref (gitprotocol-pack(5), "Report Status"). */
export function encodeReportStatus(unpack: string, results: readonly { name: string; reason: string | undefined }[]): Buffer {
  const lines = results.map(({ name, reason }) => (reason === undefined ? `ok ${name}\n` : `ng ${name} ${oneLine(reason)}\n`));
  return Buffer.concat([encodePacket(`unpack ${oneLine(unpack)}\n`), ...lines.map(encodePacket), flushPacket]);
}

function oneLine(text: string): string {
  return text.replace(/[\0-\x1f]+/g, ' ').slice(0, 1000);
}
