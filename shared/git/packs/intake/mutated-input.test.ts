import { describe, expect, it } from 'vitest';
import { ByteReader } from '#shared/byte-reader.ts';
import { GitFault } from '#shared/git/git-fault.ts';
import { applyDelta, readDeltaHead } from '#shared/git/packs/format/delta.ts';
import { DeltaCache } from '#shared/git/packs/intake/delta-cache.ts';
import { PackScanner } from '#shared/git/packs/intake/pack-scanner.ts';
import { encodePacket, flushPacket } from '#shared/git/protocol/pkt-line.ts';
import { readReceivePackRequest } from '#shared/git/receive-pack/push-protocol.ts';
import { cut, mutate, streamed } from '#shared/git/testing/mutation.ts';
import { copyInstruction, deltaOf, PackBuilder, seal } from '#shared/git/testing/pack-builder.ts';
import { createRandom, type Random } from '#test/support/random.ts';

const rounds = 3000;

/** How many inputs were accepted, and how many rejected with a GitFault. Any other error fails the test. */
async function survey(valid: Buffer, parse: (input: Buffer, random: Random) => unknown) {
  const outcome = { accepted: 0, rejected: 0 };
  for (let seed = 0; seed < rounds; seed++) {
    const random = createRandom(seed);
    const input = mutate(valid, random);
    try {
      await parse(input, random);
      outcome.accepted++;
    } catch (error) {
      if (!(error instanceof GitFault)) throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
      outcome.rejected++;
    }
  }
  return outcome;
}

describe('changed input is accepted, or rejected with a GitFault, and nothing else is thrown', () => {
  it('for the commands of a push', async () => {
    const id = (digit: string): string => digit.repeat(40);
    const valid = Buffer.concat([
      encodePacket(`shallow ${id('c')}\n`),
      encodePacket(`${id('0')} ${id('a')} refs/heads/main\0report-status side-band-64k atomic push-options\n`),
      encodePacket(`${id('a')} ${id('b')} refs/heads/other\n`),
      flushPacket,
      encodePacket('detach\n'),
      flushPacket,
    ]);
    const outcome = await survey(valid, async (input, random) => {
      const request = await readReceivePackRequest(new ByteReader(streamed(cut(input, random))), 100);
      for (const { oldOid, newOid } of request?.changes ?? []) {
        for (const oid of [oldOid, newOid]) if (oid !== undefined) expect(oid).toMatch(/^[0-9a-f]{40}$/);
      }
    });
    expect(outcome.accepted + outcome.rejected).toBe(rounds);
    expect(outcome.rejected).toBeGreaterThan(rounds / 10);
  });

  it('for deltas, whose result has exactly the stated size', async () => {
    const base = Buffer.from('the quick brown fox jumps over the lazy dog\n'.repeat(10));
    const valid = deltaOf(
      base.length,
      120,
      Buffer.concat([copyInstruction(10, 60), Buffer.from([20]), Buffer.alloc(20, 'x'), copyInstruction(300, 40)]),
    );
    const outcome = await survey(valid, (delta) => {
      const head = readDeltaHead(delta);
      if (head.resultSize > 1_000_000) throw new GitFault('larger than any limit');
      const fence = Buffer.alloc(head.resultSize + 32, 0xee);
      applyDelta(base, delta, head, fence, 16);
      expect(fence.subarray(0, 16)).toEqual(Buffer.alloc(16, 0xee));
      expect(fence.subarray(16 + head.resultSize)).toEqual(Buffer.alloc(16, 0xee));
    });
    expect(outcome.accepted + outcome.rejected).toBe(rounds);
    expect(outcome.rejected).toBeGreaterThan(rounds / 10);
  });

  it('for packs, with the right checksum so that the entries are read', async () => {
    const builder = new PackBuilder();
    const blob = builder.add('blob', 'hello world\n'.repeat(50));
    builder.add('blob', Buffer.alloc(300, 7));
    builder.referenceDelta(blob, deltaOf(600, 60, copyInstruction(0, 60)));
    const valid = builder.build().subarray(0, -20);
    const limits = { packBytes: 1_000_000, objectBytes: 100_000, objects: 100 };
    const outcome = await survey(valid, (input, random) => {
      let longestContent = 0;
      const scanner = new PackScanner(limits, new DeltaCache(), (_entry, _type, _oid, content) => {
        longestContent = Math.max(longestContent, content?.length ?? 0);
      });
      try {
        for (const piece of cut(seal(input), random)) {
          scanner.push(piece);
          if (scanner.done) break;
        }
        if (!scanner.done) throw new GitFault('it ends in the middle');
      } finally {
        scanner.close();
      }
      expect(longestContent).toBeLessThanOrEqual(limits.objectBytes);
    });
    expect(outcome.accepted + outcome.rejected).toBe(rounds);
    expect(outcome.rejected).toBeGreaterThan(rounds / 10);
  });
});
