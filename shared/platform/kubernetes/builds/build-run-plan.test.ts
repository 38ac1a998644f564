import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { BuildId } from '#shared/ids.ts';
import { sourceOf } from '#shared/platform/testing/build-specs.ts';
import { writeTar } from '#shared/sources/tar-writer.ts';
import { run } from '#test/support/run-program.ts';
import { expectGolden } from '../testing/expect-golden.ts';
import { sampleBuildSettings, sampleIds } from '../testing/samples.ts';
import { type BuildPlan, planBuildRun, planBuildSecrets, planRefusedRun } from './build-run-plan.ts';
import { readSourceFacts } from './source-facts.ts';
import { planFetchStep, planResultStep } from './task-parts.ts';

const buildId = '6a0c3c56-4c0e-4b6e-9a4e-3f6f0c1d2e3f' as BuildId;
const plan: BuildPlan = {
  buildId,
  appId: sampleIds.appId,
  timeoutSeconds: 900,
  sourceUrl: `https://paas.example.com/v1/internal/builds/${buildId}/source`,
  callbackUrl: `https://paas.example.com/v1/internal/builds/${buildId}/complete`,
  facts: { procfile: { processes: { web: './server' }, releaseCommand: './migrate' }, dockerfile: undefined },
};
const addresses = {
  source: { url: plan.sourceUrl, token: 'paasb_source' },
  callback: { url: plan.callbackUrl, token: 'paasb_callback' },
};

it('plans the PipelineRun and the Secrets of a build by buildpacks as the golden file says', async () => {
  const env = { NODE_ENV: 'production' };
  await expectGolden('build-buildpacks', [
    planBuildRun(plan, sampleBuildSettings),
    ...planBuildSecrets({ buildId, appId: sampleIds.appId, env, commit: 'c0ffee' }, plan.facts, addresses, 'uid'),
  ]);
});

it('plans those of a build from a Dockerfile as the golden file says', async () => {
  const facts = { procfile: undefined, dockerfile: { path: 'Dockerfile', arguments: ['NODE_ENV', 'PATH'] } };
  const env = { NODE_ENV: 'production', PATH: '/evil', DATABASE_URL: 'postgres://secret' };
  await expectGolden('build-dockerfile', [
    planBuildRun({ ...plan, facts }, sampleBuildSettings),
    ...planBuildSecrets({ buildId, appId: sampleIds.appId, env }, facts, addresses, 'uid'),
  ]);
});

it('plans a build that is refused as a run that never starts', async () => {
  await expectGolden('build-refused', [planRefusedRun(plan, 'Procfile line 2 is not "<type>: <command>": nonsense')]);
});

type Mounted = { name: string; workspaces?: { name: string }[]; volumeMounts?: { name: string; readOnly?: boolean }[] };
const stepsOf = (facts: BuildPlan['facts']): Mounted[] => {
  const { spec } = planBuildRun({ ...plan, facts }, sampleBuildSettings);
  const { pipelineSpec } = spec as { pipelineSpec: { tasks: { taskSpec: { steps: Mounted[] } }[] } };
  return pipelineSpec.tasks[0]?.taskSpec.steps ?? [];
};
const using = (steps: Mounted[], name: string): string[] =>
  steps.filter((step) => step.workspaces?.some((each) => each.name === name) === true).map((step) => step.name);

it('hands the registry and the tokens to no step in which code of the app runs', () => {
  const [lifecycle, dockerfile] = [
    stepsOf(plan.facts),
    stepsOf({ procfile: undefined, dockerfile: { path: 'Dockerfile', arguments: [] } }),
  ];
  expect(using(lifecycle, 'registry')).toEqual(['analyze', 'restore', 'export']);
  expect(using(lifecycle, 'cache')).toEqual(['restore', 'export']);
  expect(using(dockerfile, 'registry')).toEqual(['push']);
  for (const steps of [lifecycle, dockerfile]) expect(using(steps, 'tokens')).toEqual(['fetch']);
});

it("lets the app's build read what is pushed and upon which base, and not change it", () => {
  const mounts = stepsOf(plan.facts).find(({ name }) => name === 'build')?.volumeMounts ?? [];
  expect(mounts).toContainEqual({ name: 'state', mountPath: '/state', readOnly: true });
});

it.each([
  ['Procfile', { Procfile: 'web: a\nnonsense\n' }],
  ['deploy/Dockerfile', { Procfile: 'web: a' }],
])('says what is wrong with the source: %s', async (name, files) => {
  const variable = name === 'Procfile' ? undefined : name;
  await expect(readSourceFacts(sourceOf(files), variable)).rejects.toThrow(name);
});

it('reads of a source no more than it needs', async () => {
  const read: string[] = [];
  async function* open() {
    for (const path of ['Dockerfile', 'Procfile', 'a.txt', 'z.txt']) {
      read.push(path);
      yield { path, kind: 'file' as const, content: new TextEncoder().encode(path === 'Procfile' ? 'web: a' : 'ARG A=1 B\n') };
    }
  }
  expect(await readSourceFacts({ open })).toEqual({
    procfile: { processes: { web: 'a' } },
    dockerfile: { path: 'Dockerfile', arguments: ['A', 'B'] },
  });
  expect(read).toEqual(['Dockerfile', 'Procfile', 'a.txt']);
});

const hasCurl = spawnSync('curl', ['--version']).status === 0;

/** Runs a step's script with its places in a directory of the test. */
async function runScript(
  { script, env = [] }: { script?: unknown; env?: readonly { name: string; value: string }[] },
  root: string,
): Promise<{ code: number | null; stdout: string }> {
  const text = String(script)
    .replaceAll(/(?<![\w/])\/(workspace|state|secrets)\b/g, `${root}/$1`)
    .replaceAll(/\$\(results\.(\w+)\.path\)/g, `${root}/results-$1`);
  for (const place of ['workspace/source', 'state', 'secrets/tokens']) await mkdir(join(root, place), { recursive: true });
  const file = join(root, 'script');
  await writeFile(file, text);
  return run('sh', [file], {
    env: { PATH: process.env['PATH'] ?? '', ...Object.fromEntries(env.map(({ name, value }) => [name, value])) },
  });
}

it.skipIf(!hasCurl)('fetches the source with its token, which is in no argument, and once', async () => {
  const root = await mkdtemp(join(tmpdir(), 'pipeline-'));
  let isUsed = false;
  const server = createServer((request, response) => {
    const isAllowed = request.headers.authorization === 'Bearer paasb_source' && !isUsed;
    isUsed = true;
    response.writeHead(isAllowed ? 200 : 401);
    void (async () => {
      if (isAllowed) for await (const chunk of writeTar(sourceOf({ 'lib/a.txt': 'hello' }).open())) response.write(chunk);
      response.end();
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const step = planFetchStep('tools', `http://127.0.0.1:${(server.address() as AddressInfo).port}/source`) as Parameters<
      typeof runScript
    >[0];
    await mkdir(join(root, 'secrets/tokens'), { recursive: true });
    await writeFile(join(root, 'secrets/tokens/source'), 'Authorization: Bearer paasb_source');
    expect(await runScript(step, root)).toMatchObject({ code: 0 });
    expect(await readFile(join(root, 'workspace/source/lib/a.txt'), 'utf8')).toBe('hello');
    expect(await runScript(step, root)).toMatchObject({ code: 41 });
  } finally {
    server.close();
    await rm(root, { recursive: true });
  }
});

it.each([
  [
    'report.toml',
    '^ *digest *= *"\\(sha256:[0-9a-f]*\\)".*',
    `[image]\n  tags = ["a/b:c"]\n  digest = "sha256:${'a'.repeat(64)}"\n`,
  ],
  ['references', '^.*@\\(sha256:[0-9a-f]*\\)$', `registry.example.com/paas/x@sha256:${'a'.repeat(64)}\n`],
])('reads the digest from %s', async (file, pattern, text) => {
  const root = await mkdtemp(join(tmpdir(), 'pipeline-'));
  try {
    await mkdir(join(root, 'state'), { recursive: true });
    await writeFile(join(root, 'state', file), text);
    const step = planResultStep('tools', 'registry.example.com/paas/x', { file, pattern }) as Parameters<typeof runScript>[0];
    expect(await runScript(step, root)).toMatchObject({ code: 0 });
    expect(await readFile(join(root, 'results-IMAGE_DIGEST'), 'utf8')).toBe(`sha256:${'a'.repeat(64)}`);
    expect(await readFile(join(root, 'results-IMAGE_URL'), 'utf8')).toBe('registry.example.com/paas/x');
  } finally {
    await rm(root, { recursive: true });
  }
});
