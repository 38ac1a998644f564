import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withFileLock } from '#shared/files/file-lock.ts';
import { run, runChecked } from '#test/support/run-program.ts';

/** Where the programs of a test cluster are. */
export interface ClusterPrograms {
  /** kube-apiserver, kube-controller-manager, kube-scheduler, etcd, kwok and kubectl: its first argument says which. */
  readonly cluster: string;
  readonly certManager: string;
  readonly rollouts: string;
  readonly trafficRouter: string;
  /** Stages of kwok: how nodes and pods come up. */
  readonly stages: string;
  /** Folders of CRDs: Argo Rollouts, cert-manager, Gateway API, and those written for these tests. */
  readonly definitions: readonly string[];
}

const sources = fileURLToPath(new URL('../programs/', import.meta.url));
const ownDefinitions = fileURLToPath(new URL('./definitions/', import.meta.url));

/** How long a run waits for another that builds. */
const longestBuildSeconds = 3600;

const kubernetesVersion = 'v1.36.3';
const component = 'k8s.io/component-base/version';
const clusterFlags = [
  '-s -w',
  `-X ${component}.gitMajor=1 -X ${component}.gitMinor=36 -X ${component}.gitVersion=${kubernetesVersion}`,
  `-X ${component}.gitTreeState=archive -X ${component}.buildDate=1970-01-01T00:00:00Z`,
].join(' ');

const packages = [
  ['cluster', './cluster', clusterFlags],
  ['cert-manager', './cert-manager', '-s -w'],
  ['rollouts-controller', 'github.com/argoproj/argo-rollouts/cmd/rollouts-controller', '-s -w'],
  ['traffic-router', './traffic-router', '-s -w'],
] as const;

/** Of kwok, in the order in which a node and a pod go through them. */
const stageFiles = [
  'node/fast/node-initialize',
  'node/heartbeat-with-lease/node-heartbeat-with-lease',
  'pod/fast/pod-ready',
  'pod/fast/pod-complete',
  'pod/fast/pod-delete',
];

const goEnvironment = {
  CGO_ENABLED: '0',
  GOTOOLCHAIN: 'local',
  GOVCS: '*:off',
  GOFLAGS: '-buildvcs=false -modcacherw -trimpath -mod=readonly',
};

/** What tests on Kubernetes cannot begin without. */
export type MissingPart = 'go' | 'programs';

/** The programs that an earlier run has built, or what is missing. */
export async function findClusterPrograms(): Promise<ClusterPrograms | MissingPart> {
  const directory = await programsDirectory();
  if (directory === undefined) return 'go';
  return existsSync(directory) ? programsIn(directory) : 'programs';
}

/**
 * Builds the programs from the Go modules that `test/kubernetes/programs/go.sum` pins, once for each state of that folder: about
 * ten minutes the first time, nothing afterwards. They are kept in `$XDG_CACHE_HOME/paas/kubernetes-tests`.
 * @throws Error when Go is missing or too old, and for what it could not build
 */
export async function buildClusterPrograms(report: (line: string) => void): Promise<ClusterPrograms> {
  const found = await findClusterPrograms();
  if (typeof found === 'object') return found;
  const directory = await programsDirectory();
  if (directory === undefined)
    throw new Error('The tests on Kubernetes need Go 1.26 or later in the PATH: they build the cluster.');
  await mkdir(cache(), { recursive: true });
  await withFileLock(join(cache(), 'build.lock'), longestBuildSeconds, async () => {
    // Another run may have built them meanwhile.
    if (existsSync(directory)) return;
    report('Building the programs of the test cluster; the first time this takes about ten minutes…');
    await build(cache(), directory, report);
  });
  return programsIn(directory);
}

const cache = (): string => join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'paas/kubernetes-tests');

/** Where the programs of this state of the sources are, or shall be; undefined without Go. */
async function programsDirectory(): Promise<string | undefined> {
  const version = await run('go', ['env', 'GOVERSION'], { env: goEnvironment }).catch(() => undefined);
  return version?.code === 0 ? join(cache(), await hashSources(version.stdout)) : undefined;
}

function programsIn(directory: string): ClusterPrograms {
  return {
    cluster: join(directory, 'cluster'),
    certManager: join(directory, 'cert-manager'),
    rollouts: join(directory, 'rollouts-controller'),
    trafficRouter: join(directory, 'traffic-router'),
    stages: join(directory, 'stages.yaml'),
    definitions: [join(directory, 'definitions'), ownDefinitions],
  };
}

/** Into a directory of its own, which gets its name when all is there: other runs never meet half of it. */
async function build(parent: string, directory: string, report: (line: string) => void): Promise<void> {
  const fresh = join(parent, '.unfinished');
  await rm(fresh, { recursive: true, force: true });
  await mkdir(join(fresh, 'definitions'), { recursive: true });
  try {
    for (const [name, path, flags] of packages) {
      report(`go build ${path}`);
      await runChecked('nice', ['-n', '10', 'go', 'build', '-ldflags', flags, '-o', join(fresh, name), path], {
        cwd: sources,
        env: goEnvironment,
      });
    }
    const stages = join(await moduleDirectory('sigs.k8s.io/kwok'), 'kustomize/stage');
    const texts = await Promise.all(stageFiles.map((file) => readFile(join(stages, `${file}.yaml`), 'utf8')));
    await writeFile(join(fresh, 'stages.yaml'), texts.join('\n---\n'));
    for (const [module, folder] of [
      ['github.com/argoproj/argo-rollouts', 'manifests/crds'],
      ['github.com/cert-manager/cert-manager', 'deploy/crds'],
      ['sigs.k8s.io/gateway-api', 'config/crd/standard'],
    ] as const) {
      const from = join(await moduleDirectory(module), folder);
      const files = (await readdir(from)).filter((name) => name.endsWith('.yaml') && name !== 'kustomization.yaml');
      for (const name of files) await copyFile(join(from, name), join(fresh, 'definitions', name));
    }
    await rename(fresh, directory);
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}

async function moduleDirectory(module: string): Promise<string> {
  const { stdout } = await runChecked('go', ['list', '-m', '-f', '{{.Dir}}', module], { cwd: sources, env: goEnvironment });
  return stdout.trim();
}

async function hashSources(goVersion: string): Promise<string> {
  const hash = createHash('sha256')
    .update(goVersion)
    .update(JSON.stringify([packages, stageFiles]));
  const files = (await readdir(sources, { recursive: true })).filter((name) => /\.(go|mod|sum)$/.test(name)).sort();
  for (const name of files) hash.update(name).update(await readFile(join(sources, name)));
  return hash.digest('hex').slice(0, 16);
}
