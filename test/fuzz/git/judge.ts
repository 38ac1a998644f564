import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { git, tryGit } from '#shared/git/testing/git-client.ts';

/** One in so many is given to git alone. */
const takenSample = 50;
const refusedSample = 200;

/** Stock git, asked about packs that were taken and some that were refused. */
export class FuzzJudge {
  /** Refused here and taken by `git index-pack --strict`, by the fault we found. */
  readonly stricter = new Map<string, number>();
  /** Where the pack of what the repository has is, without its extension. */
  readonly knownPack: string;
  /** Holds what was taken. */
  readonly #bare: string;
  /** Is asked about one pack at a time. */
  readonly #sole: string;
  #taken = new Map<string, Buffer>();
  #takenCount = 0;
  #refusedCount = 0;

  private constructor(bare: string, sole: string, knownName: string) {
    this.#bare = bare;
    this.#sole = sole;
    this.knownPack = join(bare, 'objects/pack', knownName);
  }

  /** @param known a pack of what the repository has */
  static async create(place: string, known: Buffer): Promise<FuzzJudge> {
    const [bare, sole] = [await mkdtemp(join(place, 'bare-')), await mkdtemp(join(place, 'sole-'))];
    for (const repository of [bare, sole]) {
      await git(place, 'init', '-q', '--bare', repository);
      const { code, stderr } = await tryGit(repository, ['index-pack', '--stdin'], known);
      if (code !== 0) throw new Error(stderr);
    }
    const [name = ''] = (await readdir(join(bare, 'objects/pack'))).filter((each) => each.endsWith('.pack'));
    return new FuzzJudge(bare, sole, name.slice(0, -'.pack'.length));
  }

  pathOf(packId: string, extension: 'pack' | 'idx'): string {
    return join(this.#bare, 'objects/pack', `pack-${packId}.${extension}`);
  }

  /**
   * @param place puts it among those that git is asked about with `settle`
   * @throws Error when it was the turn of this one, and git alone refuses it
   */
  async taken(packId: string, pack: Buffer, place: () => void): Promise<void> {
    if (this.#taken.has(packId)) return;
    this.#taken.set(packId, pack);
    place();
    if (++this.#takenCount % takenSample !== 0) return;
    const fault = await this.#faultByGit(pack);
    if (fault !== undefined) throw takenWrongly(fault, pack);
  }

  async refused(pack: Buffer, message: string): Promise<void> {
    if (++this.#refusedCount % refusedSample !== 0 || (await this.#faultByGit(pack)) !== undefined) return;
    const kind = message.replace(/[0-9a-f]{40}/g, '…').replace(/\d+/g, 'N');
    this.stricter.set(kind, (this.stricter.get(kind) ?? 0) + 1);
  }

  /** @throws Error when git's fsck finds fault with anything that was taken since the last time */
  async settle(): Promise<void> {
    if (this.#taken.size === 0) return;
    const { code, stdout, stderr } = await tryGit(this.#bare, ['fsck', '--full', '--strict', '--no-dangling']);
    const all = this.#taken;
    this.#taken = new Map();
    await this.#clear(this.#bare);
    if (code === 0) return;
    // Which one it was: each alone, as git itself would have taken it.
    for (const pack of all.values()) {
      const fault = await this.#faultByGit(pack);
      if (fault !== undefined) throw takenWrongly(fault, pack);
    }
    throw new Error(`git fsck finds fault with packs that were taken: ${stdout}${stderr}`);
  }

  async #faultByGit(pack: Buffer): Promise<string | undefined> {
    const { code, stderr } = await tryGit(this.#sole, ['index-pack', '--strict', '--fix-thin', '--stdin'], pack);
    await this.#clear(this.#sole);
    return code === 0 ? undefined : stderr;
  }

  /** What the repository had stays. */
  async #clear(repository: string): Promise<void> {
    const packs = join(repository, 'objects/pack');
    const names = (await readdir(packs)).filter((name) => !this.knownPack.endsWith(name.replace(/\.[^.]*$/, '')));
    await Promise.all(names.map((name) => rm(join(packs, name), { force: true })));
  }
}

function takenWrongly(fault: string, pack: Buffer): Error {
  return new Error(`taken here, refused by git: ${fault}\n${pack.toString('base64')}`);
}
