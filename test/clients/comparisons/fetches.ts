import { join } from 'node:path';
import { type Comparison, contentOf, type Side } from '#test/clients/comparisons/side.ts';

/** The content of a clone with these options. */
function cloned(...options: readonly string[]): Comparison {
  return async (side) => {
    const copy = await clone(side, ...options);
    return await contentOf(side, copy);
  };
}

async function clone(side: Side, ...options: readonly string[]): Promise<string> {
  const copy = join(side.directory, 'copy');
  await side.git(side.directory, 'clone', '-q', ...options, side.url, copy);
  await side.git(copy, 'fsck', '--full', '--strict', '--connectivity-only');
  return copy;
}

/** The content of a clone after each of these commands. */
function afterCommands(options: readonly string[], ...commands: readonly (readonly string[])[]): Comparison {
  return async (side) => {
    const copy = await clone(side, ...options);
    const contents = [await contentOf(side, copy)];
    for (const command of commands) {
      const { code, stdout } = await side.try(copy, ...command);
      contents.push(`${command.join(' ')}: ${code}\n${stdout}`, await contentOf(side, copy));
    }
    return contents.join('\n\n');
  };
}

/** Exit code and output of a command. */
function outputOf(...args: readonly string[]): Comparison {
  return async (side) => {
    const { code, stdout } = await side.try(side.directory, ...args.map((arg) => (arg === 'URL' ? side.url : arg)));
    return `${code}\n${stdout.replaceAll(side.url, 'URL')}`;
  };
}

const noCheckout = '--no-checkout';
const filters = [
  'blob:none',
  'blob:limit=1k',
  'blob:limit=0',
  'tree:0',
  'tree:1',
  'tree:3',
  'object:type=commit',
  'object:type=tag',
  'object:type=tree',
  'object:type=blob',
  'combine:blob:none+tree:3',
  'combine:blob:limit=1k+object:type=blob',
];

/** What clients can ask for in a fetch. */
export const fetches: Readonly<Record<string, Comparison>> = {
  'clone --bare': cloned('--bare'),
  'clone --mirror': cloned('--mirror'),
  'clone --single-branch': cloned('--single-branch', '--branch', 'side'),
  'clone --no-tags': cloned('--no-tags'),
  'clone of a tag': cloned('--branch', 'v1'),
  'clone --revision': cloned('--revision=refs/tags/v1'),
  'clone --ref-format=reftable': cloned('--ref-format=reftable'),
  'clone with bundle URIs requested': cloned('-c', 'transfer.bundleURI=true'),
  'clone --filter=blob:none --sparse': cloned('--filter=blob:none', '--sparse'),
  ...Object.fromEntries(
    filters.map((filter) => [`clone --filter=${filter}`, cloned(noCheckout, '--bare', `--filter=${filter}`)]),
  ),
  'two filters': cloned('--bare', '--filter=blob:none', '--filter=tree:2'),
  'blobs on demand': afterCommands(
    ['--filter=blob:none', noCheckout],
    ['checkout', '-q', 'main'],
    ['log', '-p', '-3', '--format=%H'],
  ),
  'trees on demand': afterCommands(
    ['--filter=tree:0', noCheckout],
    ['checkout', '-q', 'main'],
    ['log', '--stat', '-3', '--format=%H'],
  ),
  'sparse directories on demand': afterCommands(
    ['--filter=blob:none', '--sparse'],
    ['sparse-checkout', 'set', 'deep/one'],
    ['sparse-checkout', 'add', 'deep/one/two'],
    ['ls-files', '-t'],
  ),
  'another filter later': afterCommands(['--filter=tree:0', noCheckout], ['fetch', '-q', '--refetch', '--filter=blob:none']),
  backfill: afterCommands(['--filter=blob:none', noCheckout], ['backfill', '--min-batch-size=2']),
  'a branch into a blobless clone': afterCommands(
    ['--filter=blob:none', '--single-branch', '--branch', 'side'],
    ['fetch', '-q', 'origin', 'main:refs/heads/fetched'],
  ),
  'deepened by steps': afterCommands(
    ['--depth=1'],
    ['fetch', '-q', '--deepen=3'],
    ['fetch', '-q', '--depth=12'],
    ['fetch', '-q', '--depth=2'],
    ['fetch', '-q', '--unshallow'],
  ),
  'all branches at depth 3': afterCommands(
    ['--depth=3', '--no-single-branch'],
    ['fetch', '-q', '--deepen=2'],
    ['fetch', '-q', '--unshallow'],
  ),
  'since a day': afterCommands(['--shallow-since=@1701200000'], ['fetch', '-q', '--shallow-since=@1700500000']),
  'since tomorrow': outputOf('clone', '-q', '--shallow-since=@4000000000', 'URL', 'nothing'),
  'without a tag': afterCommands(['--shallow-exclude=v1'], ['fetch', '-q', '--unshallow']),
  'without a branch': cloned('--shallow-exclude=side'),
  'without two tags': afterCommands(
    ['--shallow-exclude=v1'],
    ['fetch', '-q', '--shallow-exclude=v1', '--shallow-exclude=side', 'origin', 'main'],
  ),
  'without a missing ref': outputOf('clone', '-q', '--shallow-exclude=never', 'URL', 'nothing'),
  'shallow and blobless': afterCommands(['--depth=2', '--filter=blob:none'], ['fetch', '-q', '--deepen=2']),
  'a shallow fetch into a full clone': afterCommands(
    ['--single-branch', '--branch', 'side'],
    ['fetch', '-q', '--depth=1', 'origin', 'main'],
  ),
  'twelve days behind': async (side) => {
    const copy = await clone(side, '--bare', '--single-branch', '--branch', 'v1', '--no-tags');
    await side.git(copy, 'fetch', '-q', side.url, 'refs/heads/*:refs/heads/*', 'refs/tags/v2:refs/tags/v2');
    return await contentOf(side, copy);
  },
  'by id': async (side) => {
    const copy = join(side.directory, 'copy');
    await side.git(side.directory, 'init', '-q', copy);
    const listed = await side.git(copy, 'ls-remote', side.url, 'refs/tags/v1', 'refs/tags/v1^{}');
    const ids = listed.split('\n').map((line) => line.split('\t')[0] ?? '');
    await side.git(copy, 'fetch', '-q', '--no-tags', side.url, ...ids.map((id, i) => `${id}:refs/heads/by-id-${i}`).slice(1));
    return `${listed}\n${await contentOf(side, copy)}`;
  },
  'by a missing id': async (side) => {
    const copy = join(side.directory, 'copy');
    await side.git(side.directory, 'init', '-q', copy);
    const { code } = await side.try(copy, 'fetch', '-q', side.url, '1'.repeat(40));
    return String(code);
  },
  prefetch: afterCommands(['--depth=1'], ['fetch', '-q', '--unshallow'], ['maintenance', 'run', '--task=prefetch', '--quiet']),
  'fetch --prune --tags --atomic': afterCommands(
    ['--no-tags'],
    ['update-ref', 'refs/remotes/origin/gone', 'HEAD'],
    ['fetch', '-q', '--prune', '--tags', '--atomic'],
  ),
  'negotiate only': async (side) => {
    const copy = await clone(side, '--single-branch', '--branch', 'v1');
    await side.git(copy, 'commit', '-q', '--allow-empty', '-m', 'Only ours', '--date=@1700000000');
    const { code, stdout } = await side.try(copy, 'fetch', '-q', '--negotiate-only', '--negotiation-tip=HEAD', 'origin');
    return `${code}\n${stdout}`;
  },
  'ls-remote --symref': outputOf('ls-remote', '--symref', 'URL'),
  'ls-remote with patterns': outputOf('ls-remote', '--exit-code', 'URL', 'v1*', 'HEAD'),
  'ls-remote without a match': outputOf('ls-remote', '--exit-code', 'URL', 'never'),
  'ls-remote --tags --refs': outputOf('ls-remote', '--tags', '--refs', 'URL'),
  'clone with packfile URIs requested': outputOf('-c', 'fetch.uriProtocols=https', 'clone', '-q', 'URL', 'copy'),
  'remote show': async (side) => {
    const copy = await clone(side);
    return (await side.git(copy, 'remote', 'show', 'origin')).replaceAll(side.url, 'URL');
  },
  'remote set-head': afterCommands([], ['remote', 'set-head', 'origin', '-d'], ['remote', 'set-head', 'origin', '-a']),
  'a client of SHA-256': async (side) => {
    const copy = join(side.directory, 'copy');
    await side.git(side.directory, 'init', '-q', '--object-format=sha256', copy);
    const { code } = await side.try(copy, 'fetch', '-q', side.url, 'main');
    return String(code);
  },
  'clone of an empty repository': async (side) => {
    const copy = join(side.directory, 'copy');
    await side.git(side.directory, 'clone', '-q', side.emptyUrl, copy);
    return await side.git(copy, 'symbolic-ref', 'HEAD');
  },
};
