import type { OpenPack } from '#shared/git/packs/reading/open-pack.ts';

const pieceBytes = 256 * 1024;

/** Writes a pack exactly as it is stored. */
export async function copyPack(pack: OpenPack, write: (chunk: Uint8Array<ArrayBuffer>) => Promise<void>): Promise<void> {
  for (let position = 0; position < pack.bytes.size; position += pieceBytes) {
    await write(new Uint8Array(pack.bytes.read(position, pieceBytes)));
  }
}
