import { GitFault } from '#shared/git/git-fault.ts';
import type { GitStream } from '#shared/git/git-storage.ts';
import type { ShallowChange } from '#shared/git/object-graph/shallow.ts';
import { flushPacket } from '#shared/git/protocol/pkt-line.ts';
import { SideBandWriter } from '#shared/git/protocol/side-band-writer.ts';
import type { HeldPacks } from '#shared/git/repository/pinned-packs.ts';
import type { FetchRequest } from '#shared/git/upload-pack/fetch-request.ts';
import type { AdvertisedRef } from '#shared/git/upload-pack/ref-advertisement.ts';

/** Lines for the client about where its history ends from now on. */
export function shallowLines({ shallow, unshallow }: ShallowChange): string[] {
  return [...shallow.map((oid) => `shallow ${oid}`), ...unshallow.map((oid) => `unshallow ${oid}`)];
}

/** Undefined when the client asks for nothing of the kind. @throws GitFault when it names a ref that is not there */
export async function readShallowChange(
  held: HeldPacks,
  refs: readonly AdvertisedRef[],
  { wants, shallow, deepen }: FetchRequest,
): Promise<ShallowChange | undefined> {
  if (deepen === undefined) return undefined;
  const excluded = deepen.kind === 'not' ? deepen.refs.flatMap((ref) => refsNamed(ref, refs)) : [];
  return await held.run('shallow', {
    wants,
    clientShallow: shallow,
    deepen,
    excluded: excluded.map(({ oid }) => oid),
  });
}

/** The ref that the client means, as git completes names. @throws GitFault when there is none */
function refsNamed(given: string, refs: readonly AdvertisedRef[]): AdvertisedRef[] {
  const names = [given, `refs/${given}`, `refs/tags/${given}`, `refs/heads/${given}`];
  const found = refs.filter(({ name }) => names.includes(name));
  if (found.length === 0) throw new GitFault(`there is no ref '${given.slice(0, 100)}' here to leave out the history of`);
  return found;
}

/** Sends the pack that brings the client what it wants. */
export async function sendPack(
  held: HeldPacks,
  refs: readonly AdvertisedRef[],
  request: FetchRequest,
  change: ShallowChange | undefined,
  stream: GitStream,
  sideBand: boolean,
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
  await out.keepAliveDuring(held.run('pack', params, { output: (chunk) => out.data(chunk), signal: stream.clientGone }));
  if (sideBand) await out.bare(flushPacket);
}
