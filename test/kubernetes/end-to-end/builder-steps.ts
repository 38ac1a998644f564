/** The steps of the build pipeline with our own builders in a sandbox in place of buildpacks, and a registry that images are pushed to. */
import { fetch } from 'undici';
import type { AppId } from '#shared/ids.ts';
import { buildNamespace } from '#shared/names.ts';
import type { BuildOutcome } from '#shared/platform/builds.ts';
import type { Cluster } from '#shared/platform/kubernetes/cluster/cluster.ts';
import { kinds } from '#shared/platform/kubernetes/cluster/kinds.ts';
import { pushImage } from '#shared/platform/kubernetes/testing/fake-registry.ts';
import type { StepResult, StepRun } from '#shared/platform/kubernetes/testing/scripted-tekton.ts';
import { buildSpec, sourceOf, unaborted } from '#shared/platform/testing/build-specs.ts';
import { readTar } from '#shared/sources/tar-reader.ts';
import type { TestBuilds } from '#test/support/builds/test-builds.ts';

export interface BuilderSteps {
  runStep(step: StepRun): Promise<StepResult>;
  /** The image on this machine that an image in the registry was made of. */
  localImage(imageUrl: string): string | undefined;
}

const tarLimits = { entries: 1000, bytes: 10_000_000 };

type Built = Extract<BuildOutcome, { status: 'succeeded' }>;

export function createBuilderSteps(cluster: Cluster, local: Pick<TestBuilds, 'builds' | 'caches'>): BuilderSteps {
  const sources = new Map<string, Record<string, string>>();
  const built = new Map<string, Built>();
  const digests = new Map<string, string>();
  const locals = new Map<string, string>();
  const valueOf = ({ step }: StepRun, name: string): string => step.env?.find((each) => each.name === name)?.value ?? '';

  async function authorization({ run }: StepRun, key: string): Promise<string> {
    const secret = await cluster.read({ kind: kinds.secret, name: run.metadata.name, namespace: buildNamespace });
    return Buffer.from(secret?.data?.[key] ?? '', 'base64')
      .toString()
      .replace('Authorization: ', '');
  }

  async function fetchSource(step: StepRun): Promise<StepResult> {
    const headers = { authorization: await authorization(step, 'source') };
    const response = await fetch(valueOf(step, 'SOURCE_URL'), { headers, signal: step.signal });
    if (response.status === 401) return { exitCode: 41 };
    if (!response.ok || response.body === null) return { exitCode: 42 };
    const files: Record<string, string> = {};
    for await (const { path, kind, content } of readTar(response.body, tarLimits)) {
      const chunks: Uint8Array[] = [];
      for await (const chunk of content) chunks.push(chunk);
      if (kind === 'file') files[path] = Buffer.concat(chunks).toString();
    }
    sources.set(step.run.metadata.name, files);
    return { exitCode: 0 };
  }

  async function build({ run, print }: StepRun): Promise<StepResult> {
    const appId = run.metadata.labels?.['app-id'] as AppId;
    const { state } = await local.caches.ensureCache(appId);
    const cacheState = state === 'existed' ? 'Warm' : 'Cold';
    await print(`The cache of this machine is ${cacheState}.`);
    const spec = buildSpec(sourceOf(sources.get(run.metadata.name) ?? {}), { appId, cacheState });
    await local.builds.startBuild(spec);
    for await (const event of local.builds.watchBuild(spec.buildId, 0, unaborted)) {
      if (event.type === 'line') await print(event.line);
      else if (event.outcome.status === 'succeeded') built.set(run.metadata.name, event.outcome);
      else {
        await print(`ERROR: ${JSON.stringify(event.outcome)}`);
        return { exitCode: 51 };
      }
    }
    return { exitCode: 0 };
  }

  async function pushBuilt(step: StepRun): Promise<StepResult> {
    const outcome = built.get(step.run.metadata.name);
    const [, repository = '', tag = ''] = /^(.+):([^:/]+)$/.exec(step.step.args?.at(-1) ?? '') ?? [];
    if (outcome === undefined) return { exitCode: 62 };
    const processes = Object.entries(outcome.processes).map(([type, command]) => ({
      type,
      command: [command],
      args: [],
      direct: false,
    }));
    const config = { config: { Labels: { 'io.buildpacks.build.metadata': JSON.stringify({ processes }) } } };
    const digest = await pushImage({ repository, tag, config, layer: outcome.imageUrl });
    digests.set(step.run.metadata.name, digest);
    locals.set(`${repository}@${digest}`, outcome.imageUrl);
    await step.print(`*** Images (${digest.slice(0, 19)}):`);
    return { exitCode: 0 };
  }

  return {
    localImage: (imageUrl) => locals.get(imageUrl),
    async runStep(step) {
      switch (step.step.name) {
        case 'fetch':
          return fetchSource(step);
        case 'build':
          return build(step);
        case 'export':
          return pushBuilt(step);
        case 'result': {
          const results = { IMAGE_URL: valueOf(step, 'IMAGE'), IMAGE_DIGEST: digests.get(step.run.metadata.name) ?? '' };
          return { exitCode: 0, results };
        }
        case 'report': {
          const status = valueOf(step, 'BUILD_STATUS').toLowerCase();
          const headers = { authorization: await authorization(step, 'callback'), 'content-type': 'application/json' };
          await fetch(valueOf(step, 'CALLBACK_URL'), { method: 'POST', headers, body: JSON.stringify({ status }) });
          return { exitCode: 0 };
        }
        default:
          return { exitCode: 0 };
      }
    },
  };
}
