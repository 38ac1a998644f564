import { GitFault } from '#shared/git/git-fault.ts';

export interface DeltaSizes {
  baseSize: number;
  resultSize: number;
  /** Where the instructions begin. */
  start: number;
}

/** git reads no delta that is shorter, as one that makes nothing out of little could be. */
const shortestDelta = 4;

/** @throws GitFault when `delta[start, end)` does not begin with two sizes below 2^49, or is shorter than git reads */
export function readDeltaSizes(delta: Uint8Array, end = delta.length, start = 0): DeltaSizes {
  if (end - start < shortestDelta) throw new GitFault('a delta is too short');
  let at = start;
  const readSize = (): number => {
    let size = 0;
    for (let scale = 1; scale < 2 ** 49; scale *= 128) {
      const byte = at < end ? delta[at++] : undefined;
      if (byte === undefined) break;
      size += (byte & 127) * scale;
      if (byte < 128) return size;
    }
    throw new GitFault('a delta has no valid header');
  };
  const baseSize = readSize();
  const resultSize = readSize();
  return { baseSize, resultSize, start: at };
}

/**
 * Runs `delta[sizes.start, deltaEnd)` over `base` into `result[resultStart, resultStart + sizes.resultSize)`.
 * @throws GitFault when an instruction reaches outside of either, or the result is not as long as stated
 */
export function applyDelta(
  base: Buffer,
  delta: Buffer,
  sizes: DeltaSizes,
  deltaEnd: number,
  result: Buffer,
  resultStart: number,
): void {
  if (sizes.baseSize !== base.length) throw new GitFault('a delta was made for a base of another size');
  let at = sizes.start;
  let to = resultStart;
  const end = resultStart + sizes.resultSize;
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
  if (to !== end) throw new GitFault('a delta does not give the size it states');
}

/** Below some 20 bytes a plain loop beats the call into native code. */
function copy(source: Buffer, from: number, length: number, target: Buffer, to: number): void {
  if (length > 20) source.copy(target, to, from, from + length);
  else for (let i = 0; i < length; i++) target[to + i] = source[from + i] ?? 0;
}
