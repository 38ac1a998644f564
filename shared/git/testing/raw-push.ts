import { ByteReader } from '#shared/byte-reader.ts';
import type { ApplyPush, GitStorage } from '#shared/git/git-storage.ts';
import { encodePacket, flushPacket, packetText, readPacket } from '#shared/git/protocol/pkt-line.ts';
import type { RepositoryId } from '#shared/ids.ts';

/** A push of any bytes. */
export interface RawPush {
  /** The ref's name, its old id (default: the ref is new), and its new id. */
  change: { name: string; from?: string; to: string };
  pack: Buffer;
  applyPush: ApplyPush;
  /** How much arrives at once; default: 64 KiB. */
  pieceBytes?: number;
}

/** Pushes bytes that no git client would send. Returns the lines of the report, or the one line of an error. */
export async function pushRaw(
  storage: GitStorage,
  repositoryId: RepositoryId,
  { change, pack, applyPush, pieceBytes = 64 * 1024 }: RawPush,
): Promise<string[]> {
  const written: Uint8Array[] = [];
  const none = '0'.repeat(40);
  const command = encodePacket(`${change.from ?? none} ${change.to} ${change.name}\0report-status`);
  const all = Buffer.concat([command, flushPacket, pack]);
  const stream = {
    input: (async function* () {
      for (let at = 0; at < all.length; at += pieceBytes) yield all.subarray(at, at + pieceBytes);
    })(),
    write: async (chunk: Uint8Array) => {
      written.push(Uint8Array.from(chunk));
    },
    protocol: '',
    clientGone: new AbortController().signal,
  };
  await storage.server.receivePack({ repositoryId, headRef: 'refs/heads/main' }, stream, applyPush);
  const reader = new ByteReader(
    (async function* () {
      yield* written;
    })(),
  );
  const lines: string[] = [];
  let flushes = 0;
  for (let packet = await readPacket(reader); packet !== 'end'; packet = await readPacket(reader)) {
    if (packet === 'flush') flushes++;
    else if (typeof packet !== 'string' && flushes > 0) lines.push(packetText(packet));
  }
  return lines;
}
