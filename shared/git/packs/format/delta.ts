import { GitFault } from '#shared/git/git-fault.ts';

/** What the head of a delta says, and where its instructions are in the bytes that were read (gitformat-pack(5)). */
export interface DeltaHead {
  baseSize: number;
  resultSize: number;
  start: number;
  end: number;
}

/** git rejects shorter deltas. */
const shortestDelta = 4;

/** Reads the head of the delta `bytes[start, end)`. @throws GitFault when it does not have two sizes below 2^49, or is too short */
export function readDeltaHead(bytes: Uint8Array, start = 0, end = bytes.length): DeltaHead {
  if (end - start < shortestDelta) throw new GitFault('a delta is too short');
  let at = start;
  const readSize = (): number => {
    let size = 0;
    for (let scale = 1; scale < 2 ** 49; scale *= 128) {
      const byte = at < end ? bytes[at++] : undefined;
      if (byte === undefined) break;
      size += (byte & 127) * scale;
      if (byte < 128) return size;
    }
    throw new GitFault('a delta has no valid header');
  };
  const baseSize = readSize();
  const resultSize = readSize();
  return { baseSize, resultSize, start: at, end };
}

/**
 * Applies `delta[head.start, head.end)` to `base` and writes the object to `result[resultStart, resultStart + head.resultSize)`.
 * @throws GitFault when an instruction reaches outside of either, or the result does not have the stated size
 */
export function applyDelta(base: Buffer, delta: Buffer, head: DeltaHead, result: Buffer, resultStart: number): void {
  const deltaEnd = head.end;
  if (head.baseSize !== base.length) throw new GitFault('a delta was made for a base of another size');
  let at = head.start;
  let to = resultStart;
  const end = resultStart + head.resultSize;
  while (at < deltaEnd) {
    const instruction = delta[at++] ?? 0;
    if (instruction >= 128) {
      let from = 0;
      let length = 0;
      if (instruction & 1) from = delta[at++] ?? 0;
      if (instruction & 2) from += (delta[at++] ?? 0) * 0x100;
      if (instruction & 4) from += (delta[at++] ?? 0) * 0x10000;
      if (instruction & 8) from += (delta[at++] ?? 0) * 0x1000000;
      if (instruction & 16) length = delta[at++] ?? 0;
      if (instruction & 32) length += (delta[at++] ?? 0) * 0x100;
      if (instruction & 64) length += (delta[at++] ?? 0) * 0x10000;
      if (length === 0) length = 0x10000;
      if (at > deltaEnd || from + length > base.length || to + length > end)
        throw new GitFault('a delta reaches outside of its base');
      copy(base, from, length, result, to);
      to += length;
    } else {
      if (instruction === 0 || at + instruction > deltaEnd || to + instruction > end) throw new GitFault('a delta is malformed');
      copy(delta, at, instruction, result, to);
      at += instruction;
      to += instruction;
    }
  }
  if (to !== end) throw new GitFault('a delta does not produce the size that it states');
}

/** For fewer than about 20 bytes a loop is faster than the call into native code. */
function copy(source: Buffer, from: number, length: number, target: Buffer, to: number): void {
  if (length > 20) source.copy(target, to, from, from + length);
  else for (let i = 0; i < length; i++) target[to + i] = source[from + i] ?? 0;
}
