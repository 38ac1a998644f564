import { createHash } from 'node:crypto';
import { access, mkdir, readFile, rename } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { ifMissing } from '#shared/files/if-missing.ts';
import { run, runChecked } from '#test/support/run-program.ts';

const source = new URL('./build/', import.meta.url).pathname;
const buildArguments = ['-tags', 'sqlite sqlite_unlock_notify netgo osusergo', '-ldflags', '-s -w'];

export interface GiteaProgram {
  path: string;
  /** Directory with its templates and texts. */
  staticRoot: string;
  /** `PATH`, where it finds git. */
  searchPath: string;
}

/**
 * Gitea in the version that `build/go.mod` names, from the Go module registry. Built once for all checkouts of this repository, into
 * the user's cache; that takes about five minutes of processor time.
 * @param environment of this process
 * @throws Error that says what is missing
 */
export async function buildGitea(environment: NodeJS.ProcessEnv): Promise<GiteaProgram> {
  const env = { CGO_ENABLED: '1', GOFLAGS: '-buildvcs=false -mod=readonly', GOVCS: '*:off' };
  const { code, stdout: version } = await run('go', ['env', 'GOVERSION']);
  if (code !== 0) throw new Error('Gitea is built with Go 1.26 or later, which is not in the PATH.');
  if ((await run('gcc', ['--version'])).code !== 0) throw new Error('Gitea is built with a C compiler: gcc is not in the PATH.');
  const hash = createHash('sha256').update(version).update(buildArguments.join(' '));
  for (const name of ['go.mod', 'go.sum']) hash.update(await readFile(join(source, name)));
  const cache = environment['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  const directory = join(cache, 'paas-tests', `gitea-${hash.digest('hex').slice(0, 16)}`);
  const path = join(directory, 'gitea');
  await runChecked('go', ['mod', 'download', 'code.gitea.io/gitea'], { cwd: source, env });
  if (!(await access(path).then(() => true, ifMissing(false)))) {
    await mkdir(directory, { recursive: true });
    const unfinished = `${path}.${process.pid}`;
    await runChecked('nice', ['-n', '15', 'go', 'build', ...buildArguments, '-o', unfinished, 'code.gitea.io/gitea'], {
      cwd: source,
      env,
    });
    await rename(unfinished, path);
  }
  const { stdout: staticRoot } = await runChecked('go', ['list', '-m', '-f', '{{.Dir}}', 'code.gitea.io/gitea'], {
    cwd: source,
    env,
  });
  return { path, staticRoot: staticRoot.trim(), searchPath: environment['PATH'] ?? '' };
}
