import { deflateRawSync, deflateSync, gzipSync, constants as zlib } from 'node:zlib';
import { objectTypes, offsetDelta, referenceDelta } from '#shared/git/objects/object-type.ts';
import { encodeBaseDistance, encodeEntryHeader, packHeaderBytes } from '#shared/git/packs/format/pack-entry.ts';
import { fsckCases } from '#shared/git/testing/fsck-cases.ts';
import { mutate } from '#shared/git/testing/mutation.ts';
import { objectKinds } from '#shared/git/testing/object-kinds.ts';
import { commitOf, copyInstruction, deltaOf, PackBuilder, treeEntry } from '#shared/git/testing/pack-builder.ts';
import { addDelta, addObject, appendTo, encodeModel, type ModelEntry, type ValidPack } from '#test/fuzz/git/pack-model.ts';
import { pick, type Random } from '#test/support/random.ts';

/** A change to a valid pack that makes it invalid, or only unusual. */
export interface PackFault {
  name: string;
  /** No reader may accept it. For other faults, git decides. */
  isFatal: boolean;
  /** Takes a hundred times as long as others, and is chosen rarely. */
  isLarge?: true;
  apply(pack: ValidPack, random: Random): void;
}

const nowhere = '5'.repeat(40);
const fatal = (name: string, apply: PackFault['apply']): PackFault => ({ name, isFatal: true, apply });
const open = (name: string, apply: PackFault['apply']): PackFault => ({ name, isFatal: false, apply });
const large = (fault: PackFault): PackFault => ({ ...fault, isLarge: true });

function some(pack: ValidPack, random: Random): ModelEntry {
  return pick(random, pack.entries);
}

/** A delta of the pack. Adds one when there is none. */
function someDelta(pack: ValidPack, random: Random): ModelEntry {
  const deltas = pack.entries.filter(({ type }) => type >= offsetDelta);
  if (deltas.length > 0) return pick(random, deltas);
  const base = addObject(pack, 'blob', `a base ${random(65_536)}`);
  addDelta(pack, base, Buffer.concat([base.content, Buffer.from('+')]), appendTo(base.content, Buffer.from('+')), false);
  return pack.entries.at(-1) as ModelEntry;
}

/** A delta that names its base by its distance. */
function someOffsetDelta(pack: ValidPack, random: Random): ModelEntry {
  const base = addObject(pack, 'blob', `a base ${random(65_536)} ${pack.entries.length}`);
  addDelta(pack, base, Buffer.concat([base.content, Buffer.from('-')]), appendTo(base.content, Buffer.from('-')), false);
  return pack.entries.at(-1) as ModelEntry;
}

/** Adds a delta of a blob of 100 bytes with these instructions. */
function addInstructions(pack: ValidPack, random: Random, baseSize: number, resultSize: number, instructions: Buffer): void {
  const base = addObject(pack, 'blob', `${random(65_536)} ${pack.entries.length}`.padEnd(100, '.'));
  const data = deltaOf(baseSize, resultSize, instructions);
  if (random(2) === 0) pack.entries.push({ type: offsetDelta, data, base: base.entry ?? 0 });
  else pack.entries.push({ type: referenceDelta, data, baseId: base.id });
}

/** Offset of an entry, when all before it is valid. */
function startOf(pack: ValidPack, entry: ModelEntry): number {
  const before = pack.entries.slice(0, pack.entries.indexOf(entry));
  return encodeModel({ entries: before, trailer: Buffer.alloc(0) }).length;
}

function restate(entry: ModelEntry, size: number): void {
  entry.head = encodeEntryHeader(entry.type, size);
}

/** Encodes the size in more bytes than it needs. */
function overlong(entry: ModelEntry, bytes: number, top: number): void {
  const head = [(entry.type << 4) | (entry.data.length & 15) | 128];
  let rest = Math.floor(entry.data.length / 16);
  while (head.length < bytes - 1) {
    head.push((rest & 127) | 128);
    rest = Math.floor(rest / 128);
  }
  entry.head = Buffer.from([...head, rest | top]);
}

/** Adds so many deltas, each based on the one before it. */
function chain(pack: ValidPack, random: Random, length: number): void {
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
      // git only warns about some of them.
      open(`object: ${id === '' ? `valid, ${what}` : id}`, (pack) => {
        const builder = new Collector(pack);
        builder.add(...make(builder));
      }),
    ),
  ...objectKinds.map(({ name, type, file, make }) =>
    open(`random object: ${name}`, (pack, random) => {
      const { id } = addObject(pack, type, make(random));
      if (file !== undefined) addObject(pack, 'tree', treeEntry('100644', file, id));
    }),
  ),
];

/** Adds the objects that cases add to a builder to a model, each object once. */
class Collector extends PackBuilder {
  readonly #pack: ValidPack;

  constructor(pack: ValidPack) {
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

/** Every fault that the format has room for. */
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
  open('size: in more bytes than needed', (pack, random) => overlong(some(pack, random), 3 + random(6), 0)),
  fatal('size: 10 bytes', (pack, random) => overlong(some(pack, random), 10, 1 + random(127))),
  open('size: 10 bytes, most of them zero', (pack, random) => overlong(some(pack, random), 10, 0)),
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
  fatal('offset delta: an endless distance', (pack, random) => {
    someOffsetDelta(pack, random).distance = Buffer.alloc(8 + random(20), 0xff);
  }),
  fatal('reference delta: without a base', (pack, random) => {
    const entry = someDelta(pack, random);
    Object.assign(entry, { type: referenceDelta, baseId: nowhere });
  }),
  fatal('reference deltas: each based on the other', (pack, random) => {
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
  fatal('reference delta: the same object as its base in the repository', (pack) => {
    const [known] = pack.objects;
    if (known !== undefined)
      pack.entries.push({
        type: referenceDelta,
        data: deltaOf(known.content.length, known.content.length, copyInstruction(0, known.content.length)),
        baseId: known.id,
      });
  }),

  fatal('delta: copies from beyond its base', (pack, random) =>
    addInstructions(pack, random, 100, 10, copyInstruction(91 + random(1000), 10)),
  ),
  fatal('delta: copies more than its base', (pack, random) => addInstructions(pack, random, 100, 101, copyInstruction(0, 101))),
  fatal('delta: copies from 4 GiB', (pack, random) => addInstructions(pack, random, 100, 10, copyInstruction(0xffff_ffff, 10))),
  fatal('delta: copies 64 KiB by a length of 0', (pack, random) =>
    addInstructions(pack, random, 100, 65_536, Buffer.from([0x80])),
  ),
  fatal('delta: copies beyond its result', (pack, random) => addInstructions(pack, random, 100, 9, copyInstruction(0, 10))),
  fatal('delta: inserts beyond its result', (pack, random) =>
    addInstructions(pack, random, 100, 2, Buffer.from([3, 65, 66, 67])),
  ),
  fatal('delta: produces less than it states', (pack, random) =>
    addInstructions(pack, random, 100, 11 + random(1000), copyInstruction(0, 10)),
  ),
  fatal('delta: for a base of another size', (pack, random) =>
    addInstructions(pack, random, pick(random, [0, 99, 101, 2 ** 31, 2 ** 45]), 10, copyInstruction(0, 10)),
  ),
  fatal('delta: produces terabytes', (pack, random) => addInstructions(pack, random, 100, 2 ** 40, copyInstruction(0, 10))),
  fatal('delta: empty, and too short', (pack, random) => addInstructions(pack, random, 100, 0, Buffer.alloc(0))),
  open('delta: empty', (pack, random) => {
    const base = addObject(pack, 'blob', `${random(65_536)}`.padEnd(20_000, '.'));
    pack.entries.push({ type: referenceDelta, data: deltaOf(20_000, 0, Buffer.alloc(0)), baseId: base.id });
  }),
  fatal('delta: the reserved instruction', (pack, random) =>
    addInstructions(pack, random, 100, 10, Buffer.concat([copyInstruction(0, 10), Buffer.alloc(1 + random(3))])),
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
  fatal('count: the largest number', (pack) => {
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
  fatal('end: cut off anywhere', (pack, random) => {
    pack.length = random(encodeModel(pack).length);
  }),
  open('after the pack: random bytes', (pack, random) => {
    pack.behind = Buffer.alloc(1 + random(100), random(256));
  }),
  // Bytes after the last one of the pack are not waited for.
  open('after the pack: the pack again', (pack) => {
    pack.behind = encodeModel(pack);
  }),
  fatal('after an entry: random bytes', (pack, random) => {
    some(pack, random).behind = Buffer.alloc(1 + random(30), random(256));
  }),
  fatal('two objects with one id', (pack, random) => {
    const { type, content } = pick(random, pack.objects.slice(1));
    addObject(pack, type, content);
  }),
  fatal('two objects with one id: by a delta', (pack, random) => {
    const base = addObject(pack, 'blob', `base ${random(65_536)}`);
    const more = Buffer.from(' twice');
    const made = addDelta(pack, base, Buffer.concat([base.content, more]), appendTo(base.content, more), random(2) === 0);
    addObject(pack, 'blob', made.content);
  }),
  open('an object of the repository', (pack) => {
    const [known] = pack.objects;
    if (known !== undefined) addObject(pack, known.type, known.content);
  }),

  fatal('compressed: a wrong checksum', (pack, random) => {
    const entry = some(pack, random);
    const packed = deflateSync(entry.data);
    const at = packed.length - 1 - random(4);
    packed[at] = (packed[at] ?? 0) ^ (1 << random(8));
    entry.packed = packed;
  }),
  fatal('compressed: no checksum', (pack, random) => {
    const entry = some(pack, random);
    entry.packed = deflateSync(entry.data).subarray(0, -1 - random(4));
  }),
  fatal('compressed: raw, by gzip, or with a dictionary', (pack, random) => {
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
