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
import { FuzzJudge } from '#test/fuzz/git/judge.ts';
import { type PackFault, packFaults } from '#test/fuzz/git/pack-faults.ts';
import { encodeModel, makeSoundPack } from '#test/fuzz/git/pack-model.ts';
import { readBack } from '#test/fuzz/git/read-back.ts';
import { createRandom, pick, type Random } from '#test/support/random.ts';

const limits = { packBytes: 4_000_000, objectBytes: 1_000_000, objects: 10_000 };
/** One in so many is read back, and written out as a fetch would have it. */
const readBackSample = 10;

/** What the repository holds already: thin packs are based on it. */
const known = 'a line that is known\n'.repeat(20);

export interface PackFuzz {
  targets: readonly FuzzTarget[];
  /**
   * A pack with these faults.
   * @throws GitFault when it is refused; Error for a finding, be it that it was taken with a fault that no reader may overlook
   */
  take(random: Random, chosen: readonly PackFault[]): Promise<void>;
  /** Refused here and taken by git, by the fault we found. */
  stricter: ReadonlyMap<string, number>;
  /** How often packs with each fault were taken and refused. */
  faults: ReadonlyMap<string, { taken: number; refused: number }>;
  close(): Promise<void>;
}

/**
 * Packs through the whole of intake, into files and with thin bases. Oracle: whatever is taken, git's fsck finds sound and
 * complete, and we read it back as it was sent; what has a fault that no reader may overlook is refused; nothing but the
 * files of its quarantine is ever left.
 * @param directory for files; one in memory is much faster
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
  const judge = await FuzzJudge.create(place, builder.build());
  const base = `${judge.knownPack}.pack`;
  const stored = new ObjectDatabase([
    new OpenPack({ key: 'known', pack: base, index: `${judge.knownPack}.idx`, links: `${judge.knownPack}.links` }),
  ]);
  const faults = new Map<string, { taken: number; refused: number }>();
  let takenPacks = 0;

  /** @param pack with its checksum */
  async function run(pack: Buffer, random: Random): Promise<void> {
    try {
      // Where pieces end matters little to most of it: one in eight comes in many.
      const pieces = random(8) === 0 ? cut(pack, random) : [pack];
      const result = await intakePack(streamed(pieces), request, stored, () => undefined);
      if (result === undefined) throw new GitFault('no objects');
      if (++takenPacks % readBackSample === 0) await readBack(request, stored, random(2) === 0);
      await judge.taken(result.packId, pack, () => {
        renameSync(request.packPath, judge.pathOf(result.packId, 'pack'));
        renameSync(request.indexPath, judge.pathOf(result.packId, 'idx'));
      });
    } catch (error) {
      if (error instanceof GitFault) await judge.refused(pack, error.message);
      throw error;
    } finally {
      emptyQuarantine();
    }
  }

  /** @throws Error when there is anything but the files that it is for */
  function emptyQuarantine(): void {
    const left = readdirSync(quarantine);
    for (const name of left) rmSync(join(quarantine, name));
    if (left.some((name) => !['pack', 'idx', 'links'].includes(name))) throw new Error(`intake left ${left.join(', ')}`);
  }

  async function take(random: Random, chosen: readonly PackFault[]): Promise<void> {
    const model = makeSoundPack(random, known);
    for (const fault of chosen) fault.apply(model, random);
    const pack = encodeModel(model);
    const count = (what: 'taken' | 'refused'): void => {
      for (const { name } of chosen) {
        const counted = faults.get(name) ?? { taken: 0, refused: 0 };
        counted[what]++;
        faults.set(name, counted);
      }
    };
    try {
      await run(pack, random);
    } catch (error) {
      if (error instanceof GitFault) count('refused');
      throw error;
    }
    count('taken');
    const fatal = chosen.find(({ isFatal }) => isFatal);
    if (fatal !== undefined) throw new Error(`taken, though with a fault: ${fatal.name}`);
  }

  const small = packFaults.filter(({ isLarge }) => isLarge !== true);
  const seedsOf = (count: number): Buffer[] =>
    Array.from({ length: count }, (_, seed) => Buffer.from(Array.from({ length: 60 }, createBytes(seed))));
  const common = { batch: 50, settle: () => judge.settle() };
  return {
    take,
    stricter: judge.stricter,
    faults,
    targets: [
      {
        ...common,
        name: 'pack-bytes',
        share: 2,
        seeds: [1, 2, 3, 4, 5].map((seed) => encodeModel(makeSoundPack(createRandom(seed), known)).subarray(0, -20)),
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
          // Two faults may cancel each other out: of two, none is fatal.
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
          const model = makeSoundPack(random, known);
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

/** Decisions out of an input: changing a byte of it changes one of them. Behind its end they follow from all of it. */
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
