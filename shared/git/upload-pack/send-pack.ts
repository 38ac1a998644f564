import { GitFault } from '#shared/git/git-fault.ts';
import type { GitStream } from '#shared/git/git-storage.ts';
import type { ShallowChange } from '#shared/git/object-graph/shallow.ts';
import { flushPacket } from '#shared/git/protocol/pkt-line.ts';
import { SideBandWriter } from '#shared/git/protocol/side-band-writer.ts';
import type { PinnedPacks } from '#shared/git/repository/pinned-packs.ts';
import type { FetchRequest } from '#shared/git/upload-pack/fetch-request.ts';
import type { AdvertisedRef } from '#shared/git/upload-pack/ref-advertisement.ts';

/** The protocol's lines about where the client's history ends after this fetch. */
export function shallowLines({ shallow, unshallow }: ShallowChange): string[] {
  return [...shallow.map((oid) => `shallow ${oid}`), ...unshallow.map((oid) => `unshallow ${oid}`)];
}

/**
 * How the fetch changes where the client's history ends; undefined when the client does not ask for that.
 * @throws GitFault when it names a ref that does not exist
 */
export async function readShallowChange(
  packs: PinnedPacks,
  refs: readonly AdvertisedRef[],
  { wants, shallow, deepen }: FetchRequest,
): Promise<ShallowChange | undefined> {
  if (deepen === undefined) return undefined;
  const excluded = deepen.kind === 'not' ? deepen.refs.flatMap((ref) => refsNamed(ref, refs)) : [];
  return await packs.run('shallow', {
    wants,
    clientShallow: shallow,
    deepen,
    excluded: excluded.map(({ oid }) => oid),
  });
}

/** The refs that a name stands for, completed as git does it. @throws GitFault when there are none */
function refsNamed(given: string, refs: readonly AdvertisedRef[]): AdvertisedRef[] {
  const names = [given, `refs/${given}`, `refs/tags/${given}`, `refs/heads/${given}`];
  const found = refs.filter(({ name }) => names.includes(name));
  if (found.length === 0) throw new GitFault(`no such ref to exclude: '${given.slice(0, 100)}'`);
  return found;
}

/** What the client is to get. */
export interface PackToSend {
  refs: readonly AdvertisedRef[];
  request: FetchRequest;
  /** Of `readShallowChange`. */
  change: ShallowChange | undefined;
  /** Whether the client reads side bands. */
  sideBand: boolean;
}

/** Sends the pack with the objects that the client asked for and does not have. */
export async function sendPack(
  packs: PinnedPacks,
  stream: GitStream,
  { refs, request, change, sideBand }: PackToSend,
): Promise<void> {
  const { wants, haves, shallow, filter, thin, offsetDeltas, includeTags } = request;
  const tags = includeTags ? refs.flatMap(({ oid, peeled }) => (peeled === undefined ? [] : [{ tag: oid, target: peeled }])) : [];
  const unshallow = new Set(change?.unshallow ?? []);
  const cutAfter = [...(change?.shallow ?? []), ...shallow.filter((oid) => !unshallow.has(oid))];
  const out = new SideBandWriter((chunk) => stream.write(chunk), sideBand);
  const params = {
    wants,
    haves,
    clientShallow: shallow,
    unshallow: [...unshallow],
    cutAfter,
    filter,
    thin,
    offsetDeltas,
    tags,
  };
  await out.keepAliveDuring(packs.run('pack', params, { output: (chunk) => out.data(chunk), signal: stream.clientGone }));
  if (sideBand) await out.bare(flushPacket);
}
