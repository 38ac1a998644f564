import { pick, type Random } from '#test/support/random.ts';

/**
 * Makes one to four changes: flips a bit, replaces a byte, removes or doubles a piece, cuts the end off, or inserts a word.
 * @param words of the format, which random bytes would hardly ever form
 */
export function mutate(valid: Buffer, random: Random, words: readonly Buffer[] = []): Buffer {
  let bytes = Buffer.from(valid);
  for (let changes = 1 + random(4); changes > 0 && bytes.length > 0; changes--) {
    const at = random(bytes.length);
    const length = random(20);
    const kind = random(words.length > 0 ? 7 : 5);
    if (kind === 0) bytes[at] = (bytes[at] ?? 0) ^ (1 << random(8));
    else if (kind === 1) bytes[at] = random(256);
    else if (kind === 2) bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + length)]);
    else if (kind === 3) bytes = Buffer.concat([bytes.subarray(0, at + length), bytes.subarray(at)]);
    else if (kind === 4) bytes = bytes.subarray(0, at);
    else bytes = Buffer.concat([bytes.subarray(0, at), pick(random, words), bytes.subarray(at + (kind - 5) * length)]);
  }
  return bytes;
}

/** Cuts bytes into pieces of 1 to 40 bytes. */
export function cut(bytes: Buffer, random: Random): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = 1 + random(40);
    pieces.push(bytes.subarray(at, at + length));
    at += length;
  }
  return pieces;
}

/** The pieces as a stream. */
export async function* streamed(pieces: readonly Buffer[]): AsyncGenerator<Buffer> {
  yield* pieces;
}
