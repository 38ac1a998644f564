import { spawn } from 'node:child_process';
import type { RefChange } from '#shared/git/git-storage.ts';
import { git, tryGit } from '#shared/git/testing/git-client.ts';
import type { GitFixture } from '#shared/git/testing/git-fixture.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';

/** A history made by `git fast-import` and pushed without a client: hundreds of pushes take seconds. */
export interface LocalHistory {
  directory: string;
  /** Moves a branch to a new commit on top of `parents`, or of nothing. @returns its id */
  commit(branch: string, parents: readonly string[], files: Readonly<Record<string, string>>): Promise<ObjectId>;
  /** A branch of so many commits, each on top of the one before. @returns their ids */
  commits(branch: string, each: readonly Readonly<Record<string, string>>[]): Promise<ObjectId[]>;
  /** As a client packs what `newOid` needs beyond `has`: thin. */
  pack(newOid: ObjectId, has: readonly string[]): AsyncIterable<Uint8Array>;
  /** Takes in what `newOid` needs beyond `has`, and moves the ref there from where the storage has it. */
  push(name: string, newOid: ObjectId | undefined, has: readonly string[]): Promise<void>;
  /** Takes in the pack alone, as a push does of which the build fails. */
  pushInVain(newOid: ObjectId, has: readonly string[]): Promise<void>;
}

export async function createLocalHistory(fixture: GitFixture, repositoryId: RepositoryId, path: string): Promise<LocalHistory> {
  await git(fixture.directory, 'init', '-q', '--bare', path);
  let commits = 0;
  const importCommits = async (branch: string, each: readonly NewCommit[]): Promise<ObjectId[]> => {
    const stream = each.map((commit, i) => [...commitLines(branch, commit, i + 1, ++commits), `get-mark :${i + 1}\n`].join(''));
    const { code, stdout, stderr } = await tryGit(path, ['fast-import', '--quiet', '--force'], stream.join(''));
    if (code !== 0) throw new Error(stderr);
    return stdout.trim().split('\n') as ObjectId[];
  };
  const stage = (newOid: ObjectId, has: readonly string[]) =>
    fixture.storage.stagePack(repositoryId, thinPack(path, newOid, has), new AbortController().signal);
  return {
    directory: path,
    pack: (newOid, has) => thinPack(path, newOid, has),
    async commit(branch, parents, files) {
      const [commit = '' as ObjectId] = await importCommits(branch, [{ parents, files }]);
      return commit;
    },
    commits: (branch, each) =>
      importCommits(
        branch,
        each.map((files, i) => ({ parents: i === 0 ? [] : [`:${i}`], files })),
      ),
    async push(name, newOid, has) {
      const pack = newOid === undefined ? undefined : await stage(newOid, has);
      const oldOid = await fixture.storage.refs.readRef(repositoryId, name);
      const command: RefChange = { name, oldOid, newOid };
      const [result] = await fixture.moveRefs(repositoryId, { commands: [command], atomic: false, pushOptions: [], pack });
      await pack?.discard();
      if (result?.status !== 'ok') throw new Error(`${name} did not move`);
    },
    async pushInVain(newOid, has) {
      const pack = await stage(newOid, has);
      await pack?.admit(fixture.db);
      await pack?.discard();
    },
  };
}

interface NewCommit {
  parents: readonly string[];
  files: Readonly<Record<string, string>>;
}

function commitLines(branch: string, { parents, files }: NewCommit, mark: number, number: number): string[] {
  const data = (text: string): string => `data ${Buffer.byteLength(text)}\n${text}\n`;
  return [
    ...(parents.length === 0 ? [`reset refs/heads/${branch}\n\n`] : []),
    `commit refs/heads/${branch}\nmark :${mark}\n`,
    `committer C <c@example.com> ${1_700_000_000 + number} +0000\n${data(`commit ${number}`)}`,
    ...parents.map((parent, i) => `${i === 0 ? 'from' : 'merge'} ${parent}\n`),
    ...Object.entries(files).map(([name, text]) => `M 100644 inline ${name}\n${data(text)}`),
  ];
}

async function* thinPack(directory: string, newOid: string, has: readonly string[]): AsyncGenerator<Uint8Array> {
  const child = spawn('git', ['pack-objects', '--revs', '--thin', '--delta-base-offset', '--stdout', '-q'], {
    cwd: directory,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end([newOid, ...has.map((oid) => `^${oid}`)].map((line) => `${line}\n`).join(''));
  yield* child.stdout;
}
