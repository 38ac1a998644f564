import { join } from 'node:path';
import { type Comparison, type Side } from '#test/clients/comparisons/side.ts';

/**
 * A clone to push from. Only tags and notes are pushed, since a branch would be built. Each comparison, protocol and transport has ref
 * names of its own, because the same repositories are used again.
 */
interface Clone {
  directory: string;
  /** A unique name, for use below refs/tags/. */
  name: string;
  /** Exit code, and the result of each ref as `--porcelain` prints it. */
  push(...args: readonly string[]): Promise<string>;
  commit(): Promise<string>;
}

let comparisons = 0;

async function clone(side: Side, name: string): Promise<Clone> {
  const directory = join(side.directory, `copy-${++comparisons}`);
  await side.git(side.directory, 'clone', '-q', side.url, directory);
  let commits = 0;
  return {
    directory,
    name,
    async push(...args) {
      const { code, stdout, stderr } = await side.try(directory, 'push', '--porcelain', ...args);
      const lines = stdout.split('\n').filter((line) => /^[ +*=!-]\t/.test(line));
      const problems = stderr.split('\n').filter((line) => line.startsWith('warning:'));
      return [code, ...lines.toSorted(), ...problems].join('\n').replaceAll(side.url, 'URL');
    },
    async commit() {
      const date = `@${1_800_000_000 + ++commits} +0000`;
      await side.git(
        directory,
        '-c',
        `user.name=A`,
        'commit',
        '-q',
        '--allow-empty',
        '-m',
        `${name} ${commits}`,
        `--date=${date}`,
      );
      return await side.git(directory, 'rev-parse', 'HEAD');
    },
  };
}

function pushing(run: (clone: Clone, side: Side) => Promise<readonly string[]>): Comparison {
  return async (side) => {
    const name = `t/${side.directory.slice(-6)}`;
    const result = await run(await clone(side, name), side);
    // New commits have different ids on the two sides, since their times differ.
    return result
      .join('\n--\n')
      .replaceAll(name, 'NAME')
      .replaceAll(/\b[0-9a-f]{7,40}\b/g, 'ID');
  };
}

/** What clients can ask for in a push. */
export const pushes: Readonly<Record<string, Comparison>> = {
  'new, again, forward, back, forced, deleted': pushing(async ({ name, push, commit }) => {
    const ref = `HEAD:refs/notes/${name}`;
    const outcomes = [await push('origin', ref), await push('origin', ref)];
    await commit();
    outcomes.push(await push('origin', ref), await push('origin', `HEAD~1:refs/notes/${name}`));
    outcomes.push(await push('origin', `+HEAD~1:refs/notes/${name}`), await push('origin', `:refs/notes/${name}`));
    return [...outcomes, await push('origin', `:refs/notes/${name}`)];
  }),
  'by negotiation': pushing(async ({ name, commit, directory }, side) => {
    await commit();
    const { code, stderr } = await side.try(directory, '-c', 'push.negotiate=true', 'push', 'origin', `HEAD:refs/tags/${name}`);
    return [String(code), ...stderr.split('\n').filter((line) => line.startsWith('warning:'))];
  }),
  'with a lease': pushing(async ({ name, push, commit, directory }, side) => {
    const ref = `refs/tags/${name}`;
    await push('origin', `HEAD:${ref}`);
    const there = await side.git(directory, 'rev-parse', 'HEAD');
    await commit();
    const stale = await push(`--force-with-lease=${ref}:${'1'.repeat(40)}`, 'origin', `HEAD:${ref}`);
    const right = await push(`--force-with-lease=${ref}:${there}`, 'origin', `HEAD:${ref}`);
    return [stale, right, await push('--force-with-lease', '--force-if-includes', 'origin', `HEAD:${ref}`)];
  }),
  'signed if requested': pushing(async ({ name, push }) => [await push('--signed=if-asked', 'origin', `HEAD:refs/tags/${name}`)]),
  'signed, which is not offered': pushing(async ({ name, push }) => {
    const outcome = await push('--signed', 'origin', `HEAD:refs/tags/${name}`);
    return [outcome.startsWith('0') ? 'accepted' : 'rejected'];
  }),
  'atomic, all good': pushing(async ({ name, push }) => [
    await push('--atomic', 'origin', `HEAD:refs/tags/${name}/a`, `HEAD~1:refs/tags/${name}/b`),
  ]),
  'atomic, with conflicting names': pushing(async ({ name, push }) => [
    (await push('--atomic', 'origin', `HEAD:refs/tags/${name}/a`, `HEAD:refs/tags/${name}/a/b`)).split('\n')[0] ?? '',
  ]),
  'one good, one bad': pushing(async ({ name, push, commit }) => {
    await push('origin', `HEAD:refs/tags/${name}/a`);
    await commit();
    return [await push('origin', `HEAD:refs/tags/${name}/a`, `HEAD:refs/tags/${name}/b`)];
  }),
  'with options': pushing(async ({ name, push }) => [await push('-o', 'detach', 'origin', `HEAD:refs/tags/${name}`)]),
  'with the tags that follow': pushing(async ({ name, push, commit, directory }, side) => {
    await commit();
    await side.git(directory, 'tag', '-a', '-m', 'Follows', name);
    return [await push('--follow-tags', 'origin', `HEAD:refs/notes/${name}`)];
  }),
  'a tag of a tree and of a blob': pushing(async ({ name, push }) => [
    await push('origin', `HEAD^{tree}:refs/tags/${name}/tree`, `HEAD:index.html:refs/tags/${name}/blob`),
  ]),
  'dry run': pushing(async ({ name, push, directory }, side) => [
    await push('--dry-run', 'origin', `HEAD:refs/tags/${name}`),
    await side.git(directory, 'ls-remote', 'origin', `refs/tags/${name}`),
  ]),
  'from a shallow clone': pushing(async ({ name }, side) => {
    const shallow = join(side.directory, 'shallow');
    await side.git(side.directory, 'clone', '-q', '--depth=1', side.url, shallow);
    await side.git(shallow, 'commit', '-q', '--allow-empty', '-m', 'On top');
    const { code } = await side.try(shallow, 'push', '-q', 'origin', `HEAD:refs/tags/${name}`);
    return [String(code)];
  }),
  'from a blobless clone': pushing(async ({ name }, side) => {
    const partial = join(side.directory, 'partial');
    await side.git(side.directory, 'clone', '-q', '--filter=blob:none', side.url, partial);
    await side.git(partial, 'rm', '-q', 'index.html');
    await side.git(partial, 'commit', '-q', '-m', 'On top');
    const { code } = await side.try(partial, 'push', '-q', 'origin', `HEAD:refs/tags/${name}`);
    return [String(code)];
  }),
  'of a client of SHA-256': pushing(async ({ name }, side) => {
    const other = join(side.directory, 'sha256');
    await side.git(side.directory, 'init', '-q', '--object-format=sha256', other);
    await side.git(other, 'commit', '-q', '--allow-empty', '-m', 'Long ids');
    const { code } = await side.try(other, 'push', '-q', side.url, `HEAD:refs/tags/${name}`);
    return [code === 0 ? 'accepted' : 'rejected'];
  }),
  'a large one in pieces': pushing(async ({ name, commit, directory }, side) => {
    await side.git(directory, 'config', 'http.postBuffer', '65536');
    await side.git(directory, 'mv', 'large.txt', 'larger.txt');
    await commit();
    const { code } = await side.try(directory, 'push', '-q', 'origin', `HEAD:refs/tags/${name}`, 'HEAD:refs/notes/other');
    return [String(code)];
  }),
};
