import { readdirSync, renameSync, rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { GitFault } from '#shared/git/git-fault.ts';
import { encodePackHeader } from '#shared/git/packs/format/pack-entry.ts';
import { type IntakeRequest, intakePack } from '#shared/git/packs/intake/pack-intake.ts';
import { ObjectDatabase } from '#shared/git/packs/reading/object-database.ts';
import { OpenPack } from '#shared/git/packs/reading/open-pack.ts';
import { cut, mutate, streamed } from '#shared/git/testing/mutation.ts';
import { PackBuilder, seal } from '#shared/git/testing/pack-builder.ts';
import type { FuzzTarget } from '#test/fuzz/git/engine.ts';
import { GitOracle } from '#test/fuzz/git/git-oracle.ts';
import { type PackFault, packFaults } from '#test/fuzz/git/pack-faults.ts';
import { encodeModel, makeValidPack } from '#test/fuzz/git/pack-model.ts';
import { readBack } from '#test/fuzz/git/read-back.ts';
import { createRandom, pick, type Random } from '#test/support/random.ts';

const limits = { packBytes: 4_000_000, objectBytes: 1_000_000, objects: 10_000 };
/** One of so many packs is read back, and written like for a fetch. */
const readBackSample = 10;

/** A blob that the repository has: thin packs are based on it. */
const known = 'a line that is known\n'.repeat(20);

/** Targets that read packs. */
export interface PackFuzz {
  targets: readonly FuzzTarget[];
  /**
   * Receives a pack with these faults.
   * @throws GitFault when it is rejected; Error for a finding, such as a pack that was accepted with a fatal fault
   */
  take(random: Random, chosen: readonly PackFault[]): Promise<void>;
  /** How often we rejected a pack that git accepts, by our message. */
  stricter: ReadonlyMap<string, number>;
  /** How often packs were accepted and rejected, by name of their fault. */
  faults: ReadonlyMap<string, { accepted: number; rejected: number }>;
  close(): Promise<void>;
}

/**
 * Runs packs through the whole intake, with files and thin bases. git's fsck must find every accepted pack valid and complete, and
 * it must be read back as it was sent. A pack with a fatal fault must be rejected. Nothing but the files of its quarantine may be left.
 * @param directory for temporary files; one in memory is much faster
 */
export async function createPackFuzz(directory: string): Promise<PackFuzz> {
  const place = await mkdtemp(join(directory, 'packs-'));
  const quarantine = await mkdtemp(join(place, 'quarantine-'));
  const request: IntakeRequest = {
    packPath: join(quarantine, 'pack'),
    indexPath: join(quarantine, 'idx'),
    linksPath: join(quarantine, 'links'),
    limits,
  };
  const builder = new PackBuilder();
  builder.add('blob', known);
  const oracle = await GitOracle.create(place, builder.build());
  const base = `${oracle.knownPack}.pack`;
  const stored = new ObjectDatabase([
    new OpenPack({ key: 'known', pack: base, index: `${oracle.knownPack}.idx`, links: `${oracle.knownPack}.links` }),
  ]);
  const faults = new Map<string, { accepted: number; rejected: number }>();
  let acceptedPacks = 0;

  /** @param pack with its checksum */
  async function run(pack: Buffer, random: Random): Promise<void> {
    try {
      // Most code does not depend on where chunks end: one of eight packs arrives in many.
      const pieces = random(8) === 0 ? cut(pack, random) : [pack];
      const result = await intakePack(streamed(pieces), request, stored, () => undefined);
      if (result === undefined) throw new GitFault('no objects');
      if (++acceptedPacks % readBackSample === 0) await readBack(request, stored, random(2) === 0);
      await oracle.accepted(result.packId, pack, () => {
        renameSync(request.packPath, oracle.pathOf(result.packId, 'pack'));
        renameSync(request.indexPath, oracle.pathOf(result.packId, 'idx'));
      });
    } catch (error) {
      if (error instanceof GitFault) await oracle.rejected(pack, error.message);
      throw error;
    } finally {
      emptyQuarantine();
    }
  }

  /** @throws Error when there are other files than those of a pack */
  function emptyQuarantine(): void {
    const left = readdirSync(quarantine);
    for (const name of left) rmSync(join(quarantine, name));
    if (left.some((name) => !['pack', 'idx', 'links'].includes(name))) throw new Error(`intake left ${left.join(', ')}`);
  }

  async function take(random: Random, chosen: readonly PackFault[]): Promise<void> {
    const model = makeValidPack(random, known);
    for (const fault of chosen) fault.apply(model, random);
    const pack = encodeModel(model);
    const count = (what: 'accepted' | 'rejected'): void => {
      for (const { name } of chosen) {
        const counted = faults.get(name) ?? { accepted: 0, rejected: 0 };
        counted[what]++;
        faults.set(name, counted);
      }
    };
    try {
      await run(pack, random);
    } catch (error) {
      if (error instanceof GitFault) count('rejected');
      throw error;
    }
    count('accepted');
    const fatal = chosen.find(({ isFatal }) => isFatal);
    if (fatal !== undefined) throw new Error(`accepted with a fatal fault: ${fatal.name}`);
  }

  const small = packFaults.filter(({ isLarge }) => isLarge !== true);
  const seedsOf = (count: number): Buffer[] =>
    Array.from({ length: count }, (_, seed) => Buffer.from(Array.from({ length: 60 }, createBytes(seed))));
  const common = { batch: 50, settle: () => oracle.settle() };
  return {
    take,
    stricter: oracle.stricter,
    faults,
    targets: [
      {
        ...common,
        name: 'pack-bytes',
        share: 2,
        seeds: [1, 2, 3, 4, 5].map((seed) => encodeModel(makeValidPack(createRandom(seed), known)).subarray(0, -20)),
        words: [Buffer.from([0x78, 0x9c]), Buffer.from([0x70]), Buffer.from([0x60, 0x10]), encodePackHeader(3)],
        run: (input) => run(seal(input), createRandom(input.length)),
      },
      {
        ...common,
        name: 'pack-faults',
        share: 6,
        seeds: seedsOf(40),
        async run(input) {
          const random = decide(input);
          const from = random(2000) === 0 ? packFaults : small;
          // Two faults can cancel each other out: of two, neither is fatal.
          const single = random(8) > 0;
          const harmless = from.filter(({ isFatal }) => !isFatal);
          await take(random, single ? [pick(random, from)] : [pick(random, harmless), pick(random, harmless)]);
        },
      },
      {
        ...common,
        name: 'pack-mutated',
        share: 2,
        seeds: seedsOf(10),
        async run(input) {
          const random = decide(input);
          const model = makeValidPack(random, known);
          const entry = pick(random, model.entries);
          entry.data = mutate(entry.data, random);
          await run(encodeModel(model), random);
        },
      },
    ],
    async close() {
      stored.close();
      for (const pack of stored.packs) pack.close();
      await rm(place, { recursive: true, force: true });
    },
  };
}

function createBytes(seed: number): () => number {
  const random = createRandom(seed);
  return () => random(256);
}

/** A random source that reads an input: changing one byte changes one decision. After its end, decisions depend on all of it. */
function decide(input: Buffer): Random {
  let at = 0;
  const more = createRandom(input.reduce((sum, byte) => (Math.imul(sum, 31) + byte) | 0, input.length));
  return (below) => {
    if (at >= input.length) return more(below);
    const value = (input[at] ?? 0) + 256 * (input[at + 1] ?? 0);
    at = below > 256 ? at + 2 : at + 1;
    return (below > 256 ? value : value & 255) % below;
  };
}
