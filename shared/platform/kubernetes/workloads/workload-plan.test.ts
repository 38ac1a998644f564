import { describe, expect, it } from 'vitest';
import type { AppId, ReleaseId } from '#shared/ids.ts';
import type { WorkloadSpec } from '#shared/platform/workloads.ts';
import { expectGolden } from '../testing/expect-golden.ts';
import { sampleIds, samplePullSecret, sampleWorkloadSettings } from '../testing/samples.ts';
import { planJob } from './run-job.ts';
import { planDeployment, planReleaseSecrets, planRollout, planRoute, planRouteChange, processName } from './workload-plan.ts';

const settings = { ...sampleWorkloadSettings, pullSecret: samplePullSecret };
const web = { type: 'web', command: 'node server.js --port $PORT', quantity: 2 };
const worker = { type: 'worker', command: 'node worker.js', quantity: 1 };
const spec: WorkloadSpec = {
  ...sampleIds,
  appName: 'shop',
  releaseId: '8a1c0f5e-3a0b-4d7c-9e42-6f1d2b3c4d5e' as ReleaseId,
  releaseVersion: 7,
  imageUrl: `registry.example.com/shop@sha256:${'ab'.repeat(32)}`,
  processes: [web, worker],
  config: { GREETING: 'hello' },
  bindings: [{ addonType: 'kvstore', variables: { KVSTORE_URL: 'redis://:secret@store:6379' } }],
  hosts: ['shop.apps.example.com', 'www.example.org'],
  healthPath: '/healthz',
  bootTimeoutSeconds: 120,
};

it('plans a release as the golden file says', async () => {
  await expectGolden('workload', [
    ...planReleaseSecrets(spec),
    planDeployment(spec, web, settings),
    planDeployment(spec, worker, settings),
    planRollout(spec, web.quantity, [10, 25, 50, 100]),
    planRoute(spec, settings),
    planJob({ id: 'b7d1c2e3', spec, command: 'node migrate.js' }, settings),
  ]);
});

describe('the Deployment of a process type', () => {
  it.each([
    ['/server --fast', ['/server', '--fast']],
    ['/server $PORT', ['/bin/sh', '-c', '/server $PORT']],
  ])('starts an image of a Dockerfile without a launcher: %s', (command, expected) => {
    const imageUrl = `registry.example.com/${sampleIds.appId}/dockerfile@sha256:${'ab'.repeat(32)}`;
    const { template } = planDeployment({ ...spec, imageUrl }, { ...web, command }, settings).spec as {
      template: { spec: { containers: { command: string[]; args?: string[] }[] } };
    };
    expect(template.spec.containers[0]).toMatchObject({ command: expected });
    expect(template.spec.containers[0]?.args).toBeUndefined();
  });

  it('has no pods of its own for web, and its image in the first container', () => {
    expect(planDeployment(spec, web, settings).spec).toMatchObject({
      replicas: 0,
      template: { spec: { containers: [{ image: spec.imageUrl }] } },
    });
  });

  it('is the same for another quantity of web, so that scaling starts no canary', () => {
    expect(planDeployment(spec, { ...web, quantity: 9 }, settings)).toEqual(planDeployment(spec, web, settings));
  });

  it('has no secret value, only names of Secrets', () => {
    const text = JSON.stringify([web, worker].map((process) => planDeployment(spec, process, settings)));
    for (const value of ['hello', 'secret@store']) expect(text).not.toContain(value);
  });
});

describe('the name of a process type', () => {
  const appId = sampleIds.appId as AppId;
  it('is valid, and of its own for types that differ in characters that names cannot have', () => {
    const types = ['web', 'worker', 'Worker', 'my_worker', 'my-worker', 'w'.repeat(80), 'w'.repeat(81), 'work-'];
    const names = types.map((type) => processName(appId, type));
    expect(new Set(names).size).toBe(types.length);
    for (const name of names) expect(name).toMatch(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/);
    expect(names[1]).toBe(`app-${appId}-worker`);
  });
});

describe('the HTTPRoute', () => {
  const backends = (weights: readonly number[]) => ({
    ...planRoute(spec, settings),
    spec: {
      rules: (planRoute(spec, settings).spec as { rules: { backendRefs: object[] }[] }).rules.map((rule) => ({
        ...rule,
        backendRefs: rule.backendRefs.map((backend, index) => ({ ...backend, weight: weights[index] })),
      })),
    },
  });

  it('keeps a visitor with one release where the Gateway can, unless the app does not want it', () => {
    const withSessions = { ...settings, hasSessions: true };
    expect(JSON.stringify(planRoute(spec, withSessions))).toContain(
      '"sessionPersistence":{"sessionName":"paas-session","type":"Cookie"',
    );
    expect(JSON.stringify(planRoute({ ...spec, sessionAffinity: false }, withSessions))).not.toContain('sessionPersistence');
    expect(JSON.stringify(planRoute(spec, settings))).not.toContain('sessionPersistence');
    // An app that changes its mind: the rules are written again, with the weights they have.
    const change = planRouteChange(planRoute(spec, withSessions), backends([75, 25]));
    expect(change).toMatchObject({ rules: [{ sessionPersistence: {}, backendRefs: [{ weight: 75 }, { weight: 25 }] }] });
  });

  it('keeps the weights that Argo Rollouts has set, and gets back what somebody has changed', () => {
    expect(planRouteChange(planRoute(spec, settings), backends([50, 50]))).not.toHaveProperty('rules');
    const elsewhere = { ...planRoute(spec, settings), spec: { rules: [{ backendRefs: [{ name: 'other', port: 80 }] }] } };
    expect(planRouteChange(planRoute(spec, settings), elsewhere)).toHaveProperty('rules');
  });
});
