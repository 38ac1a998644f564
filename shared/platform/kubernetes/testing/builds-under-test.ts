import type { BuildCaches } from '#shared/platform/build-caches.ts';
import type { Builds } from '#shared/platform/builds.ts';
import type { BuildsHarness } from '#shared/platform/contract/builds.ts';
import type { Images } from '#shared/platform/images.ts';
import { sourceOf } from '#shared/platform/testing/build-specs.ts';
import { createKubernetesBuildCaches } from '../build-caches.ts';
import { createKubernetesBuilds } from '../builds/builds.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { createKubernetesImages } from '../images/images.ts';
import { createRegistry } from '../images/registry.ts';
import { sampleBuildSettings } from './samples.ts';
import { createScriptedLifecycle, type PipelineEntryPoint, startPipelineEntryPoint } from './scripted-lifecycle.ts';
import { type ScriptedTekton, type ScriptedTektonOptions, startScriptedTekton } from './scripted-tekton.ts';

/** Builds of the driver, with a scripted Tekton that builds into a registry. */
export interface BuildsUnderTest extends BuildsHarness {
  readonly cluster: Cluster;
  readonly tekton: ScriptedTekton;
  readonly pipeline: PipelineEntryPoint;
  /** The driver in another process. */
  connect(): Builds;
}

export interface BuildsUnderTestOptions
  extends Pick<ScriptedTektonOptions, 'cluster' | 'print' | 'started' | 'collectsGarbage' | 'setsSecurityContext'> {
  /** With port. */
  registry: string;
  stop(): Promise<void>;
}

export async function openBuildsUnderTest(options: BuildsUnderTestOptions): Promise<BuildsUnderTest> {
  const { cluster, registry } = options;
  const settings = { ...sampleBuildSettings, repository: `${registry}/paas`, insecureRegistry: true, registrySecret: undefined };
  const images: Images & Parameters<typeof createKubernetesBuilds>[0]['images'] = createKubernetesImages(
    createRegistry({ host: registry, insecure: true, readCredentials: async () => undefined }),
    settings.repository,
  );
  const caches: BuildCaches = createKubernetesBuildCaches(cluster);
  const pipeline = await startPipelineEntryPoint();
  const tekton = startScriptedTekton({ ...options, namespace: 'paas-build', runStep: createScriptedLifecycle(cluster) });
  const connect = (): Builds => {
    const builds = pipeline.wrap(createKubernetesBuilds({ cluster, settings, images }));
    return {
      ...builds,
      async startBuild(spec) {
        await caches.ensureCache(spec.appId);
        await builds.startBuild(spec);
      },
    };
  };
  return {
    builds: connect(),
    connect,
    cluster,
    tekton,
    pipeline,
    caches,
    images,
    sources: {
      failing: sourceOf({ Procfile: 'web: a', failing: '' }),
      endless: sourceOf({ Procfile: 'web: a', endless: '' }),
    },
    async stop() {
      await tekton.stop();
      await pipeline.stop();
      await options.stop();
    },
  };
}
