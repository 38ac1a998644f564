import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AppId, type BuildId, newUuid } from '#shared/ids.ts';
import { describeBuilds } from '#shared/platform/contract/builds.ts';
import { describeImages } from '#shared/platform/contract/images.ts';
import { buildSpec, buildToEnd, buildUntilStarted, sourceOf, watchToEnd } from '#shared/platform/testing/build-specs.ts';
import type { ClusterObject } from '../cluster/cluster.ts';
import { type BuildsUnderTest, openBuildsUnderTest } from '../testing/builds-under-test.ts';
import { createFakeCluster, type FakeCluster } from '../testing/fake-cluster.ts';
import { startFakeRegistry } from '../testing/fake-registry.ts';
import { taskRunName } from '../testing/scripted-lifecycle.ts';
import { buildRunOf } from './build-names.ts';

async function open(cluster: FakeCluster = createFakeCluster()): Promise<BuildsUnderTest> {
  const registry = await startFakeRegistry();
  return openBuildsUnderTest({
    cluster,
    registry: registry.host,
    collectsGarbage: true,
    print: async (pod, line) => cluster.printPodLog(pod, line),
    started: async () => undefined,
    stop: () => registry.stop(),
  });
}

describeBuilds('kubernetes, objects in memory', open);

describeImages('kubernetes, objects in memory', async () => {
  const { builds, images, stop } = await open();
  return {
    images,
    stop,
    async makeImage(appId) {
      const { outcome } = await buildToEnd(builds, buildSpec(sourceOf({ Procfile: `web: ${newUuid()}` }), { appId }));
      if (outcome.status !== 'succeeded') throw new Error(JSON.stringify(outcome));
      return outcome.imageUrl;
    },
  };
});

describe('builds by Tekton', () => {
  const cluster = createFakeCluster();
  let test: BuildsUnderTest;
  beforeAll(async () => {
    test = await open(cluster);
  });
  afterAll(() => test.stop());
  const plain = sourceOf({ Procfile: 'web: ./server' });

  it('shows the steps of the pipeline and what they print, but not those of the platform itself', async () => {
    const { lines } = await buildToEnd(test.builds, buildSpec(plain));
    expect(lines).toEqual([
      '-----> Fetching the source',
      '-----> Looking at the image of the last build',
      '-----> Detecting buildpacks',
      '       paketo-buildpacks/procfile 5.11.2',
      '-----> Restoring the build cache',
      '-----> Building',
      '       Paketo Buildpack for Procfile 5.11.2',
      '-----> Exporting the image',
      expect.stringMatching(/^ {7}\*\*\* Images \(sha256:/),
    ]);
  });

  it('runs what the image says where there is no Procfile', async () => {
    const { outcome } = await buildToEnd(test.builds, buildSpec(sourceOf({ 'package.json': '{}' })));
    expect(outcome).toMatchObject({ processes: { web: "bash -c 'node server.js'" }, builder: 'buildpacks' });
  });

  it('builds a source with a Dockerfile by BuildKit, and gives it the variables that it asks for and no other', async () => {
    const source = sourceOf({ Dockerfile: 'FROM alpine\nARG NODE_ENV\nCMD ["/server"]\n' });
    const spec = buildSpec(source, { env: { NODE_ENV: 'production', DATABASE_URL: 'postgres://secret' } });
    await test.builds.startBuild(spec);
    const { data } = cluster.objects.get(`Secret paas-build/build-${spec.buildId}-variables`) ?? {};
    expect(Object.keys(data ?? {})).toEqual(['NODE_ENV']);
    const { outcome } = await watchToEnd(test.builds, spec.buildId);
    expect(outcome).toMatchObject({ status: 'succeeded', processes: { web: '/server' }, builder: 'dockerfile' });
    expect(outcome.status === 'succeeded' && outcome.imageUrl).toContain(`${spec.appId}/dockerfile@sha256:`);
  });

  it('keeps tokens and variables out of the PipelineRun, and deletes them with it', async () => {
    const spec = buildSpec(test.sources.endless, { env: { SECRET: 'hunter2' } });
    await buildUntilStarted(test.builds, spec);
    const run = cluster.objects.get(`PipelineRun paas-build/build-${spec.buildId}`);
    const secret = cluster.objects.get(`Secret paas-build/build-${spec.buildId}`);
    const token = Buffer.from(secret?.data?.['source'] ?? '', 'base64')
      .toString()
      .replace('Authorization: Bearer ', '');
    expect(token).toMatch(/^\S+$/);
    expect(JSON.stringify(run)).not.toContain(token);
    expect(JSON.stringify(run)).not.toContain('hunter2');
    await test.builds.deleteBuild(spec.buildId);
    expect([...cluster.objects.keys()].filter((key) => key.includes(spec.buildId))).toEqual([]);
  });

  it('goes on in another process behind the last line, and ends there as it would have ended here', async () => {
    const spec = buildSpec(test.sources.endless);
    await buildUntilStarted(test.builds, spec);
    const other = test.connect();
    const watched = watchToEnd(other, spec.buildId, 5);
    expect(await other.cancelBuild(spec.buildId)).toBe(true);
    expect(await watched).toMatchObject({
      outcome: { status: 'canceled' },
      lines: ['-----> Building', '       Paketo Buildpack for Procfile 5.11.2', '       started'],
    });
  });

  it('reports its end to the control plane', async () => {
    const spec = buildSpec(sourceOf({ Procfile: 'web: a', failing: '' }));
    await buildToEnd(test.builds, spec);
    await expect.poll(() => test.pipeline.reports.get(spec.buildId)).toBe('failed');
  });

  it('is lost with its pod, leaves nothing, and can be started again', async () => {
    const spec = buildSpec(test.sources.endless);
    await buildUntilStarted(test.builds, spec);
    const watched = watchToEnd(test.builds, spec.buildId);
    await test.tekton.evict(taskRunName(spec.buildId), 'The node was low on resource: memory.');
    expect((await watched).outcome).toEqual({ status: 'lost' });
    expect([...cluster.objects.keys()].filter((key) => key.includes(spec.buildId))).toEqual([]);
    expect((await buildToEnd(test.builds, { ...spec, source: plain })).outcome.status).toBe('succeeded');
  });

  it('is lost when another pod takes the place of its own: the source was handed out already', async () => {
    const spec = buildSpec(test.sources.endless);
    await buildUntilStarted(test.builds, spec);
    const watched = watchToEnd(test.builds, spec.buildId);
    const reference = { ...podOf(spec.buildId) };
    const pod = await cluster.read(reference);
    await cluster.delete(reference);
    await cluster.create({ ...(pod as ClusterObject), metadata: { ...pod?.metadata, name: reference.name, uid: newUuid() } });
    expect((await watched).outcome).toEqual({ status: 'lost' });
  });

  it('is lost when it was created and never started', async () => {
    const buildId = newUuid<BuildId>();
    const { kind, name, namespace } = buildRunOf(buildId);
    await cluster.create({
      ...kind,
      metadata: {
        name,
        namespace: namespace ?? '',
        labels: { 'build-id': buildId },
        creationTimestamp: new Date(Date.now() - 300_000).toISOString(),
      },
      spec: { status: 'PipelineRunPending' },
    });
    expect((await watchToEnd(test.builds, buildId)).outcome).toEqual({ status: 'lost' });
  });

  it.each([
    [{ Procfile: 'web: a', hungry: '' }, /memory/],
    [{ Procfile: 'web: a', failing: '' }, 'The build failed with exit code 51. The log above says why.'],
    [{ 'main.c': '' }, /^No language detected .* Procfile\.$/],
  ])('says in one line why the build failed: %j', async (files, cause) => {
    const { outcome } = await buildToEnd(test.builds, buildSpec(sourceOf(files)));
    expect(outcome).toMatchObject({ status: 'failed', cause: expect.stringMatching(cause) });
  });

  it('fails a build that fills the disk, and does not start it again', async () => {
    const spec = buildSpec(test.sources.endless);
    await buildUntilStarted(test.builds, spec);
    const watched = watchToEnd(test.builds, spec.buildId);
    await test.tekton.evict(taskRunName(spec.buildId), 'Usage of EmptyDir volume "layers" exceeds the limit "6Gi". ');
    expect((await watched).outcome).toEqual({
      status: 'failed',
      cause: 'The build wrote more than 6 GiB. Remove what the app does not need to run.',
    });
  });

  it("refuses an image of another app that a build's results name", async () => {
    const spec = buildSpec(test.sources.endless);
    await buildUntilStarted(test.builds, spec);
    const watched = watchToEnd(test.builds, spec.buildId);
    const other = newUuid<AppId>();
    await cluster.patch(
      {
        ...buildRunOf(spec.buildId),
        kind: { ...buildRunOf(spec.buildId).kind, ...taskRunKind },
        name: taskRunName(spec.buildId),
      },
      {
        status: {
          conditions: [{ type: 'Succeeded', status: 'True' }],
          results: [
            { name: 'IMAGE_URL', value: `${(await firstRepository()).split('/')[0]}/paas/${other}/buildpacks` },
            { name: 'IMAGE_DIGEST', value: `sha256:${'a'.repeat(64)}` },
          ],
        },
      },
    );
    await cluster.patch(podOf(spec.buildId), { status: { phase: 'Succeeded' } });
    await expect(watched).rejects.toThrow('reports an image that is not of its app');
  });

  async function firstRepository(): Promise<string> {
    const { outcome } = await buildToEnd(test.builds, buildSpec(plain));
    return outcome.status === 'succeeded' ? outcome.imageUrl : '';
  }
});

const taskRunKind = { kind: 'TaskRun', plural: 'taskruns' };

const podOf = (buildId: BuildId) => ({
  kind: { apiVersion: 'v1', kind: 'Pod', plural: 'pods', namespaced: true },
  name: `${taskRunName(buildId)}-pod`,
  namespace: 'paas-build',
});
