import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runChecked } from '#test/support/run-program.ts';

/** A module of its own: Helm is built on another version of Kubernetes than the cluster. */
const sources = fileURLToPath(new URL('../helm/', import.meta.url));

/** Builds Helm from the Go modules that `test/kubernetes/helm/go.sum` pins, once for each state of that folder. Returns its path. */
export async function buildHelm(report: (line: string) => void): Promise<string> {
  const hash = createHash('sha256');
  for (const name of ['go.mod', 'go.sum']) hash.update(await readFile(join(sources, name)));
  const cache = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'paas/kubernetes-tests');
  const path = join(cache, `helm-${hash.digest('hex').slice(0, 16)}`);
  if ((await stat(path).catch(() => undefined)) !== undefined) return path;
  report('Building Helm; the first time this takes about five minutes…');
  await mkdir(cache, { recursive: true });
  const fresh = join(cache, `.helm-${randomUUID()}`);
  const flags = ['-buildvcs=false', '-trimpath', '-mod=readonly', '-ldflags', '-s -w', '-o', fresh];
  await runChecked('nice', ['-n', '10', 'go', 'build', ...flags, 'helm.sh/helm/v4/cmd/helm'], {
    cwd: sources,
    env: { CGO_ENABLED: '0', GOTOOLCHAIN: 'local', GOVCS: '*:off' },
  });
  await rename(fresh, path);
  return path;
}
