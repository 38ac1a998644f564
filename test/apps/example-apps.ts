import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ifMissing } from '#shared/files/if-missing.ts';
import { run, runChecked } from '#test/support/run-program.ts';

/** Apps in the folders of a bare git repository. */
export interface ExampleApps {
  /** All names, sorted. */
  readonly names: readonly string[];
  /** Writes the files of an app into a new directory, and returns its test.json. */
  extract(name: string, directory: string): Promise<string | undefined>;
}

/**
 * @param repository path of a bare repository
 * @param folder where each directory is an app; '.' if the repository itself is the only one
 */
export async function openExampleApps(repository: string, folder: string): Promise<ExampleApps> {
  const git = ['--git-dir', repository];
  const alone = folder === '.';
  const listed = alone
    ? undefined
    : await runChecked('git', [...git, 'ls-tree', '-d', '--name-only', `HEAD:${folder.replace(/\/$/, '')}`]);
  const names = listed?.stdout.split('\n').filter((name) => name !== '') ?? ['app'];
  return {
    names,
    async extract(name, directory) {
      await mkdir(directory, { recursive: true });
      const archive = `${directory}.tar`;
      const tree = alone ? 'HEAD' : `HEAD:${folder}/${name}`;
      const absent = (await listAbsent(git, tree)).map((path) => `:(exclude,literal)${path}`);
      await runChecked('git', [
        ...git,
        'archive',
        '--format=tar',
        '--output',
        archive,
        tree,
        ...(absent.length > 0 ? ['.', ...absent] : []),
      ]);
      const unpacked = await run('tar', ['--extract', '--file', archive, '--directory', directory]);
      await rm(archive);
      if (unpacked.code !== 0) throw new Error(`${name} could not be unpacked: ${unpacked.output}`);
      return readFile(join(directory, 'test.json'), 'utf8').catch(ifMissing(undefined));
    },
  };
}

/** Files whose contents a partial copy of a repository lacks, as it may its largest ones. */
async function listAbsent(git: readonly string[], tree: string): Promise<readonly string[]> {
  const listed = await runChecked('git', [...git, 'ls-tree', '-r', '--format=%(objectname) %(path)', tree]);
  const files = new Map(listed.stdout.split('\n').map((line) => [line.slice(line.indexOf(' ') + 1), line.split(' ')[0] ?? '']));
  const ids = [...new Set(files.values())].filter((id) => id !== '');
  const checked = await runChecked('git', [...git, 'cat-file', '--batch-check'], { input: `${ids.join('\n')}\n` });
  const missing = new Set(checked.stdout.split('\n').flatMap((line) => (line.endsWith(' missing') ? [line.split(' ')[0]] : [])));
  return [...files].flatMap(([path, id]) => (missing.has(id) ? [path] : []));
}
