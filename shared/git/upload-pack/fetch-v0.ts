import { ByteReader } from '#shared/byte-reader.ts';
import { GitFault } from '#shared/git/git-fault.ts';
import type { GitRepository, GitStream } from '#shared/git/git-storage.ts';
import { encodePacket, flushPacket, packetText, readPacket } from '#shared/git/protocol/pkt-line.ts';
import { writePackets } from '#shared/git/protocol/write-packets.ts';
import { type PinnedPacks, pinPacks } from '#shared/git/repository/pinned-packs.ts';
import type { RepositoryAccess } from '#shared/git/repository/repository-access.ts';
import { addFetchLine, emptyFetchRequest, type FetchRequest } from '#shared/git/upload-pack/fetch-request.ts';
import { type AdvertisedRef, readPeeledRefs } from '#shared/git/upload-pack/ref-advertisement.ts';
import { readShallowChange, sendPack, shallowLines } from '#shared/git/upload-pack/send-pack.ts';
import type { ObjectId } from '#shared/ids.ts';

const nullOid = '0'.repeat(40);
const capabilities =
  'multi_ack_detailed no-done side-band-64k thin-pack ofs-delta shallow deepen-since deepen-not deepen-relative no-progress include-tag ' +
  'allow-tip-sha1-in-want allow-reachable-sha1-in-want filter object-format=sha1 agent=paas';
const mostHaves = 200_000;
/** Each costs a task of a worker, whatever the client has sent in it. Clients with 32 commits a round can send as many as allowed. */
const mostRounds = 8000;

/**
 * Serves a fetch in version 0 of the protocol (gitprotocol-pack(5)): lists the refs, reads what the client wants and, in rounds,
 * what it has, and sends the pack.
 */
export async function serveFetchV0(access: RepositoryAccess, repository: GitRepository, stream: GitStream): Promise<void> {
  const reader = new ByteReader(stream.input);
  const refs = await readPeeledRefs(access, repository);
  if (stream.step !== 'serve') await advertise(repository, refs, stream);
  if (stream.step === 'advertise') return;
  const wanted = await readWants(reader);
  if (wanted === undefined) return;
  const { request, options } = wanted;
  using packs = await pinPacks(access, repository.repositoryId);
  const { missing } = await packs.run('negotiate', {
    wants: request.wants,
    haves: [],
    clientShallow: request.shallow,
  });
  if (missing !== undefined) throw new GitFault(`upload-pack: not our ref ${missing}`);
  const change = await readShallowChange(packs, refs, request);
  if (change !== undefined)
    await stream.write(Buffer.concat([...shallowLines(change).map((line) => encodePacket(`${line}\n`)), flushPacket]));
  const haves = await negotiate(packs, reader, stream, request, options);
  if (haves === undefined) return;
  await sendPack(packs, stream, { refs, request: { ...request, haves }, change, sideBand: options.has('side-band-64k') });
}

async function advertise({ headRef }: GitRepository, refs: readonly AdvertisedRef[], stream: GitStream): Promise<void> {
  const head = refs.find(({ name }) => name === headRef);
  const lines = head === undefined ? [] : [`${head.oid} HEAD`];
  for (const { name, oid, peeled } of refs) {
    lines.push(`${oid} ${name}`);
    if (peeled !== undefined) lines.push(`${peeled} ${name}^{}`);
  }
  if (lines.length === 0) lines.push(`${nullOid} capabilities^{}`);
  const offered = head === undefined ? capabilities : `${capabilities} symref=HEAD:${headRef}`;
  await writePackets(
    (bytes) => stream.write(bytes),
    lines.map((line, i) => (i === 0 ? `${line}\0${offered}\n` : `${line}\n`)),
  );
}

/** Undefined when the client wants nothing. */
async function readWants(reader: ByteReader): Promise<{ request: FetchRequest; options: ReadonlySet<string> } | undefined> {
  const request = emptyFetchRequest();
  let options = new Set<string>();
  for (;;) {
    const packet = await readPacket(reader);
    if (packet === 'end' || packet === 'flush') break;
    if (typeof packet === 'string') throw new GitFault(`unexpected ${packet} packet`);
    const line = packetText(packet);
    const first = request.wants.length === 0 && line.startsWith('want ');
    if (first)
      options = new Set(
        line
          .slice('want '.length + 40)
          .trim()
          .split(' '),
      );
    addFetchLine(request, first ? line.slice(0, 'want '.length + 40) : line);
  }
  if (request.wants.length === 0) return undefined;
  request.thin = options.has('thin-pack');
  request.offsetDeltas = options.has('ofs-delta');
  request.includeTags = options.has('include-tag');
  if (options.has('deepen-relative') && request.deepen?.kind === 'depth') request.deepen.relative = true;
  return { request, options };
}

/** The commits that client and repository have in common. Undefined when the client disconnects. */
async function negotiate(
  packs: PinnedPacks,
  reader: ByteReader,
  stream: GitStream,
  { wants, shallow }: FetchRequest,
  options: ReadonlySet<string>,
): Promise<ObjectId[] | undefined> {
  const detailed = options.has('multi_ack_detailed');
  const common = new Set<ObjectId>();
  let round: ObjectId[] = [];
  let total = 0;
  let rounds = 0;
  for (;;) {
    const packet = await readPacket(reader);
    if (packet === 'end') return undefined;
    if (packet !== 'flush' && typeof packet === 'string') throw new GitFault(`unexpected ${packet} packet`);
    const line = packet === 'flush' ? 'flush' : packetText(packet);
    if (line.startsWith('have ')) {
      if (++total > mostHaves) throw new GitFault('the fetch names too many objects');
      if (!/^have [0-9a-f]{40}$/.test(line)) throw new GitFault('the fetch names an object by an invalid id');
      round.push(line.slice('have '.length) as ObjectId);
      continue;
    }
    if (line !== 'done' && line !== 'flush') throw new GitFault(`unexpected line in the negotiation: '${line.slice(0, 100)}'`);
    if (++rounds > mostRounds) throw new GitFault('the negotiation has too many rounds');
    const answers: string[] = [];
    const found = await packs.run('negotiate', { wants, haves: [...common, ...round], clientShallow: shallow });
    const known = new Set(found.common);
    for (const oid of round) {
      if (!known.has(oid) || common.has(oid)) continue;
      common.add(oid);
      if (detailed) answers.push(`ACK ${oid} common`);
      else if (common.size === 1) answers.push(`ACK ${oid}`);
    }
    const last = [...common].at(-1);
    if (line === 'done') {
      if (last === undefined) answers.push('NAK');
      else if (detailed) answers.push(`ACK ${last}`);
    } else {
      if (detailed && found.ready && last !== undefined) answers.push(`ACK ${last} ready`);
      if (detailed || last === undefined) answers.push('NAK');
      if (options.has('no-done') && found.ready && last !== undefined) answers.push(`ACK ${last}`);
    }
    await stream.write(Buffer.concat(answers.map((answer) => encodePacket(`${answer}\n`))));
    if (line === 'done' || (options.has('no-done') && found.ready && last !== undefined)) return [...common];
    round = [];
  }
}
