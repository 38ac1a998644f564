import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { GitFault } from '#shared/git/git-fault.ts';
import { ObjectDatabase } from '#shared/git/packs/object-database.ts';
import { OpenPack } from '#shared/git/packs/open-pack.ts';
import { encodePackHeader } from '#shared/git/packs/pack-entry.ts';
import { intakePack } from '#shared/git/packs/pack-intake.ts';
import { git, tryGit } from '#shared/git/testing/git-client.ts';
import { cut, mutate, streamed } from '#shared/git/testing/mutation.ts';
import { commitOf, copyInstruction, deltaOf, objectId, PackBuilder, seal, treeEntry } from '#shared/git/testing/pack-builder.ts';
import type { FuzzTarget } from '#test/fuzz/git/engine.ts';
import { createRandom, pick, type Random } from '#test/support/random.ts';

const limits = { packBytes: 1_000_000, objectBytes: 1_000_000, objects: 1000 };
/** One in so many that are refused is given to git too. */
const refusedSample = 400;

/** What the repository holds already: thin packs are based on it. */
const known = 'a line that is known\n'.repeat(20);

export interface PackFuzz {
  targets: readonly FuzzTarget[];
  /** Refused here and taken by `git index-pack --strict`, by the fault we found. */
  stricter: ReadonlyMap<string, number>;
  close(): Promise<void>;
}

/**
 * Packs through the whole of intake, into files and with thin bases. Oracle: whatever is taken, git's fsck finds sound and
 * complete; whatever is refused leaves no file but those of its quarantine.
 * @param directory for files; one in memory is much faster
 */
export async function createPackFuzz(directory: string): Promise<PackFuzz> {
  const place = await mkdtemp(join(directory, 'packs-'));
  const bare = join(place, 'bare.git');
  await git(place, 'init', '-q', '--bare', bare);
  const knownPack = new PackBuilder();
  knownPack.add('blob', known);
  await tryGit(bare, ['index-pack', '--stdin'], knownPack.build());
  const packs = join(bare, 'objects/pack');
  const [packName = ''] = (await readdir(packs)).filter((name) => name.endsWith('.pack'));
  const knownFile = join(packs, packName.slice(0, -'.pack'.length));
  const stored = new ObjectDatabase([
    new OpenPack({ key: 'known', pack: `${knownFile}.pack`, index: `${knownFile}.idx`, links: `${knownFile}.links` }),
  ]);
  const stricter = new Map<string, number>();
  let runs = 0;
  let taken = new Map<string, Buffer>();

  /** @param pack with its checksum */
  async function run(pack: Buffer): Promise<void> {
    const quarantine = join(place, `q-${++runs}`);
    await mkdir(quarantine);
    const [packPath, indexPath, linksPath] = ['pack', 'idx', 'links'].map((name) => join(quarantine, name)) as [
      string,
      string,
      string,
    ];
    try {
      const input = streamed(cut(pack, createRandom(pack.length)));
      const result = await intakePack(input, { packPath, indexPath, linksPath, limits }, stored, () => undefined);
      if (result === undefined) throw new GitFault('no objects');
      const name = `pack-${result.packId}`;
      if (taken.has(name)) return;
      taken.set(name, pack);
      await rename(packPath, join(packs, `${name}.pack`));
      await rename(indexPath, join(packs, `${name}.idx`));
    } catch (error) {
      if (error instanceof GitFault && runs % refusedSample === 0) await compareRefusal(pack, error);
      throw error;
    } finally {
      await rm(quarantine, { recursive: true });
    }
  }

  async function compareRefusal(pack: Buffer, { message }: GitFault): Promise<void> {
    const { code } = await tryGit(bare, ['index-pack', '--strict', '--fix-thin', '--stdin'], pack);
    const kind = message.replace(/[0-9a-f]{40}/g, '…').replace(/\d+/g, 'N');
    if (code === 0) stricter.set(kind, (stricter.get(kind) ?? 0) + 1);
    await clear();
  }

  async function clear(): Promise<void> {
    const names = (await readdir(packs)).filter((name) => !join(packs, name).startsWith(knownFile));
    await Promise.all(names.map((name) => rm(join(packs, name))));
    taken = new Map();
  }

  async function settle(): Promise<void> {
    if (taken.size === 0) return;
    const { code, stdout, stderr } = await tryGit(bare, ['fsck', '--full', '--strict', '--no-dangling']);
    const all = taken;
    await clear();
    if (code === 0) return;
    // Which one it was: each alone, as git itself would have taken it.
    for (const pack of all.values()) {
      const alone = await tryGit(bare, ['index-pack', '--strict', '--fix-thin', '--stdin'], pack);
      await clear();
      if (alone.code !== 0) throw new Error(`taken here, refused by git: ${alone.stderr}\n${pack.toString('base64')}`);
    }
    throw new Error(`git fsck finds fault with packs that were taken: ${stdout}${stderr}`);
  }

  return {
    stricter,
    targets: [
      {
        name: 'pack-bytes',
        batch: 50,
        seeds: [1, 2, 3, 4, 5].map((seed) => makePack(createRandom(seed)).subarray(0, -20)),
        words: [Buffer.from([0x78, 0x9c]), Buffer.from([0x70]), Buffer.from([0x60, 0x10]), encodePackHeader(3)],
        run: (input) => run(seal(input)),
        settle,
      },
      {
        name: 'pack-structure',
        batch: 50,
        seeds: [Buffer.alloc(200), ...[7, 8, 9].map((seed) => Buffer.from(Array.from({ length: 200 }, createBytes(seed))))],
        run: (input) => run(makePack(decide(input))),
        settle,
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

/** Decisions out of an input: changing a byte of it changes one of them. */
function decide(input: Buffer): Random {
  let at = 0;
  return (below) => {
    const value = (input[at] ?? 0) + 256 * (input[at + 1] ?? 0);
    at = below > 256 ? at + 2 : at + 1;
    return (below > 256 ? value : value & 255) % below;
  };
}

/** A pack of a few objects that hang together, mostly: each thing may be wrong now and then. */
function makePack(random: Random): Buffer {
  const builder = new PackBuilder();
  const ids: Record<'blob' | 'tree' | 'commit', string[]> = { blob: [objectId('blob', known)], tree: [], commit: [] };
  const contents: string[] = [known];
  const offsets: { at: number; size: number }[] = [];
  const rarely = (): boolean => random(30) === 29;
  const count = 1 + random(12);
  for (let i = 0; i < count; i++) {
    const kind = random(8);
    if (kind <= 1 || ids.blob.length === 1) {
      const content = rarely() ? '' : `line ${random(50)}\n`.repeat(1 + random(40));
      offsets.push({ at: builder.length, size: content.length });
      ids.blob.push(builder.add('blob', content));
      contents.push(content);
    } else if (kind === 2) {
      const names = new Set(
        Array.from({ length: 1 + random(4) }, () => pick(random, ['a', 'a.b', 'b', 'c', '.gitmodules', '.gitattributes', '.x'])),
      );
      let tree = Buffer.concat(
        [...names].toSorted().map((name) => treeEntry(rarely() ? '120000' : '100644', name, pick(random, ids.blob))),
      );
      if (ids.tree.length > 0 && random(2) === 0) tree = Buffer.concat([tree, treeEntry('40000', 'z', pick(random, ids.tree))]);
      ids.tree.push(builder.add('tree', rarely() ? mutate(tree, random) : tree));
    } else if (kind === 3 && ids.tree.length > 0) {
      const parents = ids.commit.length > 0 ? [`parent ${pick(random, ids.commit)}`] : [];
      const text = Buffer.from(commitOf(pick(random, ids.tree), ...parents));
      ids.commit.push(builder.add('commit', rarely() ? mutate(text, random) : text));
    } else if (kind === 4 && ids.commit.length > 0) {
      builder.add(
        'tag',
        `object ${pick(random, ids.commit)}\ntype ${rarely() ? 'tree' : 'commit'}\ntag v${i}\ntagger A <a@b> 1 +0000\n\n`,
      );
    } else {
      const which = random(contents.length);
      const base = contents[which] ?? '';
      const from = random(base.length + 1);
      const keep = random(base.length - from + 1);
      const insert = `${i}${'+'.repeat(random(30))}`;
      const instructions = Buffer.concat([
        ...(keep > 0 ? [copyInstruction(from, keep)] : []),
        Buffer.from([insert.length]),
        Buffer.from(insert),
      ]);
      const delta = deltaOf(base.length, keep + insert.length, instructions);
      const made = rarely() ? mutate(delta, random) : delta;
      const result = base.slice(from, from + keep) + insert;
      const offset = offsets.find(({ size }) => size === base.length);
      if (kind === 5 && offset !== undefined && which > 0)
        builder.offsetDelta(rarely() ? random(builder.length) : offset.at, made);
      else builder.referenceDelta(rarely() ? objectId('blob', 'nowhere') : (ids.blob[which] ?? ''), made);
      ids.blob.push(objectId('blob', result));
      contents.push(result);
    }
  }
  return rarely() ? builder.build(random(20)) : builder.build();
}
