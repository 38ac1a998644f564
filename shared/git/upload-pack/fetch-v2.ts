import { ByteReader } from '#shared/byte-reader.ts';
import { GitFault } from '#shared/git/git-fault.ts';
import type { GitRepository, GitStream } from '#shared/git/git-storage.ts';
import { delimiterPacket, encodePacket, flushPacket, packetText, readPacket } from '#shared/git/protocol/pkt-line.ts';
import { writePackets } from '#shared/git/protocol/write-packets.ts';
import { pinPacks } from '#shared/git/repository/pinned-packs.ts';
import type { RepositoryAccess } from '#shared/git/repository/repository-access.ts';
import { addFetchLine, emptyFetchRequest, type FetchRequest } from '#shared/git/upload-pack/fetch-request.ts';
import { readPeeledRefs } from '#shared/git/upload-pack/ref-advertisement.ts';
import { readShallowChange, sendPack, shallowLines } from '#shared/git/upload-pack/send-pack.ts';

const capabilities = [
  'version 2',
  'agent=paas',
  'ls-refs=unborn',
  'fetch=shallow wait-for-done filter',
  'server-option',
  'object-format=sha1',
];
/** With more prefixes than that, all refs are sent, as git does. */
const mostPrefixes = 1000;
const mostArgumentBytes = 16 * 1024 * 1024;
/** Memory that a line takes beyond its text. */
const lineOverheadBytes = 60;

/** Serves commands in version 2 of the protocol (gitprotocol-v2(5)), until the client is done. */
export async function serveFetchV2(access: RepositoryAccess, repository: GitRepository, stream: GitStream): Promise<void> {
  const reader = new ByteReader(stream.input);
  if (stream.step !== 'serve')
    await stream.write(Buffer.concat([...capabilities.map((line) => encodePacket(`${line}\n`)), flushPacket]));
  if (stream.step === 'advertise') return;
  for (let command = await readCommand(reader); command !== undefined; command = await readCommand(reader)) {
    if (command.name === 'ls-refs') await listRefs(access, repository, stream, command.lines);
    else if (command.name === 'fetch') await fetch(access, repository, stream, command.lines);
    else throw new GitFault(`unknown command: '${command.name.slice(0, 100)}'`);
  }
}

interface Command {
  name: string;
  /** Its arguments. */
  lines: string[];
}

/** Undefined when the client is done. */
async function readCommand(reader: ByteReader): Promise<Command | undefined> {
  let name: string | undefined;
  let inArguments = false;
  let bytes = 0;
  const lines: string[] = [];
  for (;;) {
    const packet = await readPacket(reader);
    if (packet === 'end' || packet === 'response-end') return undefined;
    if (packet === 'flush') {
      if (name !== undefined) return { name, lines };
      if (bytes === 0) return undefined;
      throw new GitFault('the request has no command');
    }
    if (packet === 'delimiter') {
      if (inArguments) throw new GitFault('the request has two sections of arguments');
      inArguments = true;
      continue;
    }
    bytes += packet.length + lineOverheadBytes;
    if (bytes > mostArgumentBytes) throw new GitFault('the request is too long');
    const line = packetText(packet);
    if (inArguments) lines.push(line);
    else if (line.startsWith('command=')) name = line.slice('command='.length);
    else if (line.startsWith('object-format=') && line !== 'object-format=sha1') throw new GitFault('this repository uses SHA-1');
  }
}

async function listRefs(
  access: RepositoryAccess,
  repository: GitRepository,
  stream: GitStream,
  lines: readonly string[],
): Promise<void> {
  const requested = lines.filter((line) => line.startsWith('ref-prefix ')).map((line) => line.slice('ref-prefix '.length));
  const prefixes = requested.length === 0 || requested.length > mostPrefixes ? undefined : requested;
  const [peel, symrefs, unborn] = ['peel', 'symrefs', 'unborn'].map((word) => lines.includes(word));
  const packets: string[] = [];
  if (prefixes === undefined || prefixes.some((prefix) => 'HEAD'.startsWith(prefix))) {
    const target = symrefs === true ? ` symref-target:${repository.headRef}` : '';
    const head = await access.refs.readRef(repository.repositoryId, repository.headRef);
    if (head !== undefined) packets.push(`${head} HEAD${target}\n`);
    else if (unborn === true) packets.push(`unborn HEAD${target}\n`);
  }
  const refs = await readPeeledRefs(access, repository, prefixes);
  for (const { name, oid, peeled } of refs)
    packets.push(`${oid} ${name}${peel === true && peeled !== undefined ? ` peeled:${peeled}` : ''}\n`);
  await writePackets((bytes) => stream.write(bytes), packets);
}

async function fetch(
  access: RepositoryAccess,
  repository: GitRepository,
  stream: GitStream,
  lines: readonly string[],
): Promise<void> {
  const request = emptyFetchRequest();
  for (const line of lines) addFetchLine(request, line);
  // A client that sends `wait-for-done` may only negotiate, as it does before a push.
  if (request.wants.length === 0 && !request.waitForDone) throw new GitFault('the fetch wants nothing');
  using packs = await pinPacks(access, repository.repositoryId);
  const { wants, shallow } = request;
  const { missing, common, ready } = await packs.run('negotiate', {
    wants,
    haves: request.haves,
    clientShallow: shallow,
  });
  if (missing !== undefined) throw new GitFault(`upload-pack: not our ref ${missing}`);
  if (!request.done) {
    const answers = common.length === 0 ? ['NAK'] : common.map((oid) => `ACK ${oid}`);
    const proceed = ready && !request.waitForDone;
    if (proceed) answers.push('ready');
    await stream.write(
      Buffer.concat([
        ...['acknowledgments', ...answers].map((line) => encodePacket(`${line}\n`)),
        proceed ? delimiterPacket : flushPacket,
      ]),
    );
    if (!proceed) return;
  }
  const refs = await readPeeledRefs(access, repository, neededRefs(request));
  const change = await readShallowChange(packs, refs, request);
  if (change !== undefined) {
    await stream.write(
      Buffer.concat([...['shallow-info', ...shallowLines(change)].map((line) => encodePacket(`${line}\n`)), delimiterPacket]),
    );
  }
  await stream.write(encodePacket('packfile\n'));
  await sendPack(packs, stream, { refs, request: { ...request, haves: common }, change, sideBand: true });
}

/** Prefixes of the refs that this fetch needs to know; undefined for all refs. */
function neededRefs({ deepen, includeTags }: FetchRequest): readonly string[] | undefined {
  if (deepen?.kind === 'not') return undefined;
  return includeTags ? ['refs/tags/'] : [];
}
