import { deflateRawSync, deflateSync, gzipSync, constants as zlib } from 'node:zlib';
import { objectTypes, offsetDelta, referenceDelta } from '#shared/git/objects/object-type.ts';
import { encodeBaseDistance, encodeEntryHeader, packHeaderBytes } from '#shared/git/packs/format/pack-entry.ts';
import { fsckCases } from '#shared/git/testing/fsck-cases.ts';
import { mutate } from '#shared/git/testing/mutation.ts';
import { objectKinds } from '#shared/git/testing/object-kinds.ts';
import { commitOf, copyInstruction, deltaOf, PackBuilder, treeEntry } from '#shared/git/testing/pack-builder.ts';
import { addDelta, addObject, appendTo, encodeModel, type ModelEntry, type SoundPack } from '#test/fuzz/git/pack-model.ts';
import { pick, type Random } from '#test/support/random.ts';

/** One thing that is wrong with a pack, or only looks so. */
export interface PackFault {
  name: string;
  /** No reader may take it; otherwise git is asked. */
  isFatal: boolean;
  /** Costs a hundred times what others do: chosen seldom. */
  isLarge?: true;
  apply(pack: SoundPack, random: Random): void;
}

const nowhere = '5'.repeat(40);
const fatal = (name: string, apply: PackFault['apply']): PackFault => ({ name, isFatal: true, apply });
const open = (name: string, apply: PackFault['apply']): PackFault => ({ name, isFatal: false, apply });
const large = (fault: PackFault): PackFault => ({ ...fault, isLarge: true });

function some(pack: SoundPack, random: Random): ModelEntry {
  return pick(random, pack.entries);
}

/** A delta of the pack; one is put there if it has none. */
function someDelta(pack: SoundPack, random: Random): ModelEntry {
  const deltas = pack.entries.filter(({ type }) => type >= offsetDelta);
  if (deltas.length > 0) return pick(random, deltas);
  const base = addObject(pack, 'blob', `a base ${random(65_536)}`);
  addDelta(pack, base, Buffer.concat([base.content, Buffer.from('+')]), appendTo(base.content, Buffer.from('+')), false);
  return pack.entries.at(-1) as ModelEntry;
}

/** A delta that names its base by its distance. */
function someOffsetDelta(pack: SoundPack, random: Random): ModelEntry {
  const base = addObject(pack, 'blob', `a base ${random(65_536)} ${pack.entries.length}`);
  addDelta(pack, base, Buffer.concat([base.content, Buffer.from('-')]), appendTo(base.content, Buffer.from('-')), false);
  return pack.entries.at(-1) as ModelEntry;
}

/** A delta of 100 bytes out of 100 bytes by these instructions. */
function instructed(pack: SoundPack, random: Random, baseSize: number, resultSize: number, instructions: Buffer): void {
  const base = addObject(pack, 'blob', `${random(65_536)} ${pack.entries.length}`.padEnd(100, '.'));
  const data = deltaOf(baseSize, resultSize, instructions);
  if (random(2) === 0) pack.entries.push({ type: offsetDelta, data, base: base.entry ?? 0 });
  else pack.entries.push({ type: referenceDelta, data, baseId: base.id });
}

/** Where an entry begins when all before it is as it should be. */
function startOf(pack: SoundPack, entry: ModelEntry): number {
  const before = pack.entries.slice(0, pack.entries.indexOf(entry));
  return encodeModel({ entries: before, trailer: Buffer.alloc(0) }).length;
}

function restate(entry: ModelEntry, size: number): void {
  entry.head = encodeEntryHeader(entry.type, size);
}

/** A size in more bytes than it takes. */
function overlong(entry: ModelEntry, bytes: number, top: number): void {
  const head = [(entry.type << 4) | (entry.data.length & 15) | 128];
  let rest = Math.floor(entry.data.length / 16);
  while (head.length < bytes - 1) {
    head.push((rest & 127) | 128);
    rest = Math.floor(rest / 128);
  }
  entry.head = Buffer.from([...head, rest | top]);
}

/** As many deltas, each on the one before it. */
function chain(pack: SoundPack, random: Random, length: number): void {
  let last = addObject(pack, 'blob', `${random(65_536)} at the bottom`);
  for (let i = 0; i < length; i++) {
    const more = Buffer.from([65 + (i % 26)]);
    last = addDelta(pack, last, Buffer.concat([last.content, more]), appendTo(last.content, more), false);
  }
}

const hostile: readonly PackFault[] = [
  ...fsckCases
    .filter(([, what]) => !what.includes('17 MiB'))
    .map(([id, what, make]) =>
      // Some of them git only warns of.
      open(`object: ${id === '' ? `sound, ${what}` : id}`, (pack) => {
        const builder = new Collector(pack);
        builder.add(...make(builder));
      }),
    ),
  ...objectKinds.map(({ name, type, file, make }) =>
    open(`chance object: ${name}`, (pack, random) => {
      const { id } = addObject(pack, type, make(random));
      if (file !== undefined) addObject(pack, 'tree', treeEntry('100644', file, id));
    }),
  ),
];

/** Puts into a model what cases put into a builder; each object once. */
class Collector extends PackBuilder {
  readonly #pack: SoundPack;

  constructor(pack: SoundPack) {
    super();
    this.#pack = pack;
  }

  override add(...[type, content]: Parameters<PackBuilder['add']>): string {
    const { id } = addObject(this.#pack, type, content);
    const [first] = this.#pack.objects.filter((object) => object.id === id);
    if (first !== this.#pack.objects.at(-1)) {
      this.#pack.objects.pop();
      this.#pack.entries.pop();
    }
    return id;
  }
}

/** Every way to be wrong that the format has room for. */
export const packFaults: readonly PackFault[] = [
  open('nothing', () => undefined),
  fatal('size: one more', (pack, random) => {
    const entry = some(pack, random);
    restate(entry, entry.data.length + 1 + random(3) * random(1000));
  }),
  fatal('size: less', (pack, random) => {
    const entry = some(pack, random);
    if (entry.data.length === 0) restate(entry, 1);
    else restate(entry, random(entry.data.length));
  }),
  fatal('size: far beyond', (pack, random) => restate(some(pack, random), pick(random, [2 ** 31, 2 ** 32, 2 ** 40, 2 ** 48]))),
  open('size: longer than it need be', (pack, random) => overlong(some(pack, random), 3 + random(6), 0)),
  fatal('size: 10 bytes', (pack, random) => overlong(some(pack, random), 10, 1 + random(127))),
  open('size: 10 bytes of nothing', (pack, random) => overlong(some(pack, random), 10, 0)),
  fatal('type: unknown', (pack, random) => {
    const entry = some(pack, random);
    entry.head = encodeEntryHeader(pick(random, [0, 5]), entry.data.length);
  }),
  fatal('type: another', (pack, random) => {
    const entry = pack.entries[addObject(pack, 'blob', `no ${random(65_536)} tree`).entry ?? 0];
    if (entry !== undefined) entry.type = pick(random, [objectTypes.tree, objectTypes.commit, objectTypes.tag]);
  }),

  fatal('offset delta: on itself', (pack, random) => {
    someOffsetDelta(pack, random).distance = Buffer.from([0]);
  }),
  fatal('offset delta: before the pack', (pack, random) => {
    const entry = someOffsetDelta(pack, random);
    entry.distance = encodeBaseDistance(startOf(pack, entry) + random(1000));
  }),
  fatal('offset delta: on the head of the pack', (pack, random) => {
    const entry = someOffsetDelta(pack, random);
    entry.distance = encodeBaseDistance(startOf(pack, entry) - random(packHeaderBytes));
  }),
  fatal('offset delta: into the middle of an entry', (pack, random) => {
    const entry = someOffsetDelta(pack, random);
    const base = pack.entries[entry.base ?? 0];
    if (base !== undefined) entry.distance = encodeBaseDistance(startOf(pack, entry) - startOf(pack, base) - 1 - random(8));
  }),
  fatal('offset delta: a distance without an end', (pack, random) => {
    someOffsetDelta(pack, random).distance = Buffer.alloc(8 + random(20), 0xff);
  }),
  fatal('reference delta: on nothing', (pack, random) => {
    const entry = someDelta(pack, random);
    Object.assign(entry, { type: referenceDelta, baseId: nowhere });
  }),
  fatal('reference deltas: each waits for another', (pack, random) => {
    const [one, other] = [random(65_536), random(65_536)].map((number) => number.toString(16).padStart(40, '0'));
    for (const baseId of [one ?? nowhere, other ?? nowhere])
      pack.entries.push({ type: referenceDelta, data: deltaOf(5, 5, copyInstruction(0, 5)), baseId });
  }),
  open('reference delta: before its base', (pack, random) => {
    const base = addObject(pack, 'blob', `late ${random(65_536)}`);
    const made = Buffer.concat([base.content, Buffer.from('!')]);
    addDelta(pack, base, made, appendTo(base.content, Buffer.from('!')), true);
    const [late, delta] = pack.entries.splice(-2);
    if (late !== undefined && delta !== undefined) pack.entries.push(delta, late);
  }),
  fatal('reference delta: makes what it is based on, which the repository has', (pack) => {
    const [known] = pack.objects;
    if (known !== undefined)
      pack.entries.push({
        type: referenceDelta,
        data: deltaOf(known.content.length, known.content.length, copyInstruction(0, known.content.length)),
        baseId: known.id,
      });
  }),

  fatal('delta: copies from beyond its base', (pack, random) =>
    instructed(pack, random, 100, 10, copyInstruction(91 + random(1000), 10)),
  ),
  fatal('delta: copies more than its base', (pack, random) => instructed(pack, random, 100, 101, copyInstruction(0, 101))),
  fatal('delta: copies from 4 GiB', (pack, random) => instructed(pack, random, 100, 10, copyInstruction(0xffff_ffff, 10))),
  fatal('delta: copies 64 KiB by stating nothing', (pack, random) => instructed(pack, random, 100, 65_536, Buffer.from([0x80]))),
  fatal('delta: copies beyond its result', (pack, random) => instructed(pack, random, 100, 9, copyInstruction(0, 10))),
  fatal('delta: inserts beyond its result', (pack, random) => instructed(pack, random, 100, 2, Buffer.from([3, 65, 66, 67]))),
  fatal('delta: makes less than it states', (pack, random) =>
    instructed(pack, random, 100, 11 + random(1000), copyInstruction(0, 10)),
  ),
  fatal('delta: for a base of another size', (pack, random) =>
    instructed(pack, random, pick(random, [0, 99, 101, 2 ** 31, 2 ** 45]), 10, copyInstruction(0, 10)),
  ),
  fatal('delta: makes terabytes', (pack, random) => instructed(pack, random, 100, 2 ** 40, copyInstruction(0, 10))),
  fatal('delta: makes nothing, in too few bytes', (pack, random) => instructed(pack, random, 100, 0, Buffer.alloc(0))),
  open('delta: makes nothing', (pack, random) => {
    const base = addObject(pack, 'blob', `${random(65_536)}`.padEnd(20_000, '.'));
    pack.entries.push({ type: referenceDelta, data: deltaOf(20_000, 0, Buffer.alloc(0)), baseId: base.id });
  }),
  fatal('delta: the reserved instruction', (pack, random) =>
    instructed(pack, random, 100, 10, Buffer.concat([copyInstruction(0, 10), Buffer.alloc(1 + random(3))])),
  ),
  fatal('delta: ends in an instruction', (pack, random) => {
    const entry = someDelta(pack, random);
    entry.data = entry.data.subarray(0, -1 - random(Math.min(7, entry.data.length - 3)));
  }),
  fatal('delta: ends in its sizes', (pack, random) => {
    someDelta(pack, random).data = Buffer.alloc(random(9), 0xff);
  }),
  open('delta: changed bytes', (pack, random) => {
    const entry = someDelta(pack, random);
    entry.data = mutate(entry.data, random);
  }),
  open('deltas: a chain', (pack, random) => chain(pack, random, 2 + random(60))),
  large(open('deltas: a chain of thousands', (pack, random) => chain(pack, random, 4000 + random(90)))),
  large(fatal('deltas: a chain that is too long', (pack, random) => chain(pack, random, 4097 + random(20)))),
  large(
    open('deltas: thousands on one base', (pack, random) => {
      const base = addObject(pack, 'blob', `${random(65_536)}`.padEnd(1000 + random(60_000), '.'));
      for (let i = random(3000); i >= 0; i--) {
        const more = Buffer.from(`${i}`);
        addDelta(pack, base, Buffer.concat([base.content, more]), appendTo(base.content, more), random(2) === 0);
      }
    }),
  ),

  fatal('count: more', (pack, random) => {
    pack.count = pack.entries.length + 1 + random(3) * random(1000);
  }),
  fatal('count: less', (pack, random) => {
    pack.count = random(pack.entries.length);
  }),
  fatal('count: all that fits', (pack) => {
    pack.count = 0xffff_ffff;
  }),
  fatal('version', (pack, random) => {
    pack.version = pick(random, [0, 1, 4, 0x0200_0000, 0xffff_ffff]);
  }),
  open('version 3', (pack) => {
    pack.version = 3;
  }),
  fatal('trailer: another', (pack, random) => {
    pack.trailer = Buffer.alloc(20, random(256));
  }),
  fatal('trailer: too short', (pack, random) => {
    pack.length = encodeModel(pack).length - 1 - random(20);
  }),
  fatal('end: anywhere', (pack, random) => {
    pack.length = random(encodeModel(pack).length);
  }),
  open('behind the pack: anything', (pack, random) => {
    pack.behind = Buffer.alloc(1 + random(100), random(256));
  }),
  // What comes later than its last byte is not waited for.
  open('behind the pack: itself', (pack) => {
    pack.behind = encodeModel(pack);
  }),
  fatal('behind an entry: anything', (pack, random) => {
    some(pack, random).behind = Buffer.alloc(1 + random(30), random(256));
  }),
  fatal('two objects of one id', (pack, random) => {
    const { type, content } = pick(random, pack.objects.slice(1));
    addObject(pack, type, content);
  }),
  fatal('two objects of one id: by a delta', (pack, random) => {
    const base = addObject(pack, 'blob', `base ${random(65_536)}`);
    const more = Buffer.from(' twice');
    const made = addDelta(pack, base, Buffer.concat([base.content, more]), appendTo(base.content, more), random(2) === 0);
    addObject(pack, 'blob', made.content);
  }),
  open('an object that the repository has', (pack) => {
    const [known] = pack.objects;
    if (known !== undefined) addObject(pack, known.type, known.content);
  }),

  fatal('compressed: a wrong sum', (pack, random) => {
    const entry = some(pack, random);
    const packed = deflateSync(entry.data);
    const at = packed.length - 1 - random(4);
    packed[at] = (packed[at] ?? 0) ^ (1 << random(8));
    entry.packed = packed;
  }),
  fatal('compressed: no sum', (pack, random) => {
    const entry = some(pack, random);
    entry.packed = deflateSync(entry.data).subarray(0, -1 - random(4));
  }),
  fatal('compressed: bare, by gzip, or with a dictionary', (pack, random) => {
    const entry = some(pack, random);
    const ways = [deflateRawSync, gzipSync, (data: Buffer) => deflateSync(data, { dictionary: Buffer.from('a dictionary') })];
    entry.packed = pick(random, ways)(entry.data);
  }),
  fatal('compressed: not at all', (pack, random) => {
    const entry = some(pack, random);
    entry.packed = Buffer.from(`not compressed ${entry.data.toString('latin1')}`);
  }),
  fatal('compressed: a megabyte more than it states', (pack, random) => {
    const entry = some(pack, random);
    entry.packed = deflateSync(Buffer.concat([entry.data, Buffer.alloc(1024 * 1024)]));
  }),
  open('compressed: in other ways', (pack, random) => {
    const entry = some(pack, random);
    const [level, windowBits, strategy] = [random(10), 9 + random(7), random(5)];
    entry.packed = deflateSync(entry.data, { level, windowBits, strategy });
  }),
  open('compressed: in many blocks', (pack, random) => {
    const entry = some(pack, random);
    entry.packed = deflateSync(entry.data, { finishFlush: zlib.Z_FINISH, level: 0, chunkSize: 64 });
  }),
  open('compressed: changed bytes', (pack, random) => {
    const entry = some(pack, random);
    entry.packed = mutate(deflateSync(entry.data), random);
  }),

  fatal('links: a commit without its parent', (pack, random) => {
    const tree = addObject(pack, 'tree', treeEntry('100644', `t${random(65_536)}`, pack.objects[0]?.id ?? nowhere));
    addObject(pack, 'commit', commitOf(tree.id, `parent ${nowhere}`));
  }),
  fatal('links: a tree without its file', (pack) => void addObject(pack, 'tree', treeEntry('100644', 'a', nowhere))),
  fatal(
    'links: a directory that is a file',
    (pack) => void addObject(pack, 'tree', treeEntry('40000', 'a', pack.objects[0]?.id ?? nowhere)),
  ),
  fatal(
    'links: a tag that misnames its type',
    (pack) =>
      void addObject(
        pack,
        'tag',
        `object ${pack.objects[0]?.id}\ntype commit\ntag v\ntagger A <a@example.com> 1 +0000\n\nmessage\n`,
      ),
  ),
  open('links: one blob for a file, a link and a program', (pack) => {
    const id = pack.objects[0]?.id ?? nowhere;
    const modes = ['100644', '100755', '120000'];
    addObject(pack, 'tree', Buffer.concat(modes.map((mode, i) => treeEntry(mode, `f${i}`, id))));
  }),
  ...hostile,
];
