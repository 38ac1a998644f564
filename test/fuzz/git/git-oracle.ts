import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { git, tryGit } from '#shared/git/testing/git-client.ts';

/** One of so many packs is checked by git alone, at once. */
const acceptedSample = 50;
const rejectedSample = 200;

/** Has stock git check the packs that we accepted, and some of those that we rejected. */
export class GitOracle {
  /** How often we rejected a pack that `git index-pack --strict` accepts, by our message. */
  readonly stricter = new Map<string, number>();
  /** Path of the pack with the repository's objects, without its extension. */
  readonly knownPack: string;
  /** Gets the accepted packs. */
  readonly #bare: string;
  /** Checks one pack at a time. */
  readonly #sole: string;
  #accepted = new Map<string, Buffer>();
  #acceptedCount = 0;
  #rejectedCount = 0;

  private constructor(bare: string, sole: string, knownName: string) {
    this.#bare = bare;
    this.#sole = sole;
    this.knownPack = join(bare, 'objects/pack', knownName);
  }

  /** @param known a pack with the repository's objects */
  static async create(place: string, known: Buffer): Promise<GitOracle> {
    const [bare, sole] = [await mkdtemp(join(place, 'bare-')), await mkdtemp(join(place, 'sole-'))];
    for (const repository of [bare, sole]) {
      await git(place, 'init', '-q', '--bare', repository);
      const { code, stderr } = await tryGit(repository, ['index-pack', '--stdin'], known);
      if (code !== 0) throw new Error(stderr);
    }
    const [name = ''] = (await readdir(join(bare, 'objects/pack'))).filter((each) => each.endsWith('.pack'));
    return new GitOracle(bare, sole, name.slice(0, -'.pack'.length));
  }

  /** Where to put a file of an accepted pack. */
  pathOf(packId: string, extension: 'pack' | 'idx'): string {
    return join(this.#bare, 'objects/pack', `pack-${packId}.${extension}`);
  }

  /**
   * @param place moves the pack's files to `pathOf`, for `settle`
   * @throws Error when this one is checked alone, and git rejects it
   */
  async accepted(packId: string, pack: Buffer, place: () => void): Promise<void> {
    if (this.#accepted.has(packId)) return;
    this.#accepted.set(packId, pack);
    place();
    if (++this.#acceptedCount % acceptedSample !== 0) return;
    const fault = await this.#faultByGit(pack);
    if (fault !== undefined) throw wronglyAccepted(fault, pack);
  }

  /** Records a pack that we rejected. */
  async rejected(pack: Buffer, message: string): Promise<void> {
    if (++this.#rejectedCount % rejectedSample !== 0 || (await this.#faultByGit(pack)) !== undefined) return;
    const kind = message.replace(/[0-9a-f]{40}/g, '…').replace(/\d+/g, 'N');
    this.stricter.set(kind, (this.stricter.get(kind) ?? 0) + 1);
  }

  /** Checks all packs since the last call at once. @throws Error when git's fsck rejects one */
  async settle(): Promise<void> {
    if (this.#accepted.size === 0) return;
    const { code, stdout, stderr } = await tryGit(this.#bare, ['fsck', '--full', '--strict', '--no-dangling']);
    const all = this.#accepted;
    this.#accepted = new Map();
    await this.#clear(this.#bare);
    if (code === 0) return;
    // Finds out which one: each is checked alone, as in a push to git.
    for (const pack of all.values()) {
      const fault = await this.#faultByGit(pack);
      if (fault !== undefined) throw wronglyAccepted(fault, pack);
    }
    throw new Error(`git fsck rejects packs that were accepted: ${stdout}${stderr}`);
  }

  async #faultByGit(pack: Buffer): Promise<string | undefined> {
    const { code, stderr } = await tryGit(this.#sole, ['index-pack', '--strict', '--fix-thin', '--stdin'], pack);
    await this.#clear(this.#sole);
    return code === 0 ? undefined : stderr;
  }

  /** Deletes all packs but that with the repository's objects. */
  async #clear(repository: string): Promise<void> {
    const packs = join(repository, 'objects/pack');
    const names = (await readdir(packs)).filter((name) => !this.knownPack.endsWith(name.replace(/\.[^.]*$/, '')));
    await Promise.all(names.map((name) => rm(join(packs, name), { force: true })));
  }
}

function wronglyAccepted(fault: string, pack: Buffer): Error {
  return new Error(`accepted here, rejected by git: ${fault}\n${pack.toString('base64')}`);
}
