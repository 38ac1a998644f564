import { spawn } from 'node:child_process';
import type { RefChange } from '#shared/git/git-storage.ts';
import { git, tryGit } from '#shared/git/testing/git-client.ts';
import type { GitFixture } from '#shared/git/testing/git-fixture.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';

/** A history that `git fast-import` makes and that is pushed without a client: hundreds of pushes take seconds. */
export interface LocalHistory {
  directory: string;
  /** Moves a branch to a new commit with these parents. Returns its id. */
  commit(branch: string, parents: readonly string[], files: Readonly<Record<string, string>>): Promise<ObjectId>;
  /** Makes a branch of commits with these files, each on top of the one before. Returns their ids. */
  commits(branch: string, each: readonly Readonly<Record<string, string>>[]): Promise<ObjectId[]>;
  /** The thin pack that a client sends for `newOid` when the server has `has`. */
  pack(newOid: ObjectId, has: readonly string[]): AsyncIterable<Uint8Array>;
  /** Pushes `newOid` to a ref of the storage, with a pack for a server that has `has`. */
  push(name: string, newOid: ObjectId | undefined, has: readonly string[]): Promise<void>;
  /** Adds the pack and moves no ref, like a push whose build fails. */
  pushPackOnly(newOid: ObjectId, has: readonly string[]): Promise<void>;
}

/** Creates an empty history in a bare repository at `path`. */
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
    async pushPackOnly(newOid, has) {
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
