import { AppError } from '#shared/errors.ts';
import type { BuildId } from '#shared/ids.ts';
import { buildNamespace } from '#shared/names.ts';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import type { BuildOutcome, BuildSpec, Builds } from '#shared/platform/builds.ts';
import type { Procfile } from '#shared/platform/procfile.ts';
import type { Cluster, ClusterObject } from '../cluster/cluster.ts';
import { kinds } from '../cluster/kinds.ts';
import { pollUntil } from '../cluster/pause.ts';
import { parseImageUrl } from '../images/image-address.ts';
import type { ImageConfigs } from '../images/image-config.ts';
import { type BuildEnd, readBuildEnd } from './build-end.ts';
import { annotations, buildRunOf, selectBuild } from './build-names.ts';
import { planBuildRun, planBuildSecrets, planRefusedRun } from './build-run-plan.ts';
import type { BuildSettings } from './build-settings.ts';
import { chooseProcesses } from './choose-processes.ts';
import { type BuildObservation, observeBuild } from './observe-build.ts';
import { readSourceFacts, type SourceFacts } from './source-facts.ts';
import { watchBuildOf } from './watch-build.ts';

/** What builds need. */
export interface BuildsOptions {
  cluster: Cluster;
  settings: BuildSettings;
  images: ImageConfigs;
}

/** Longer than the grace that pods have. */
const deletionSeconds = 120;

/** Builds by Tekton: a PipelineRun each. Nothing of a build is in this process, so any process may watch or end it. */
export function createKubernetesBuilds({ cluster, settings, images }: BuildsOptions): Builds {
  const hints = new Map<BuildId, AbortController>();
  const hinted = (buildId: BuildId): AbortSignal => {
    const known = hints.get(buildId) ?? new AbortController();
    hints.set(buildId, known);
    return known.signal;
  };

  const builds: Builds = {
    async startBuild(spec) {
      try {
        await start(spec);
      } finally {
        await spec.source.close();
      }
    },

    async *watchBuild(buildId, afterLine, signal) {
      try {
        yield* watchBuildOf({ cluster, hinted, conclude, forget: builds.deleteBuild }, buildId, afterLine, signal);
      } finally {
        hints.delete(buildId);
      }
    },

    async cancelBuild(buildId) {
      const build = await observeBuild(cluster, buildId);
      if (build === undefined || isOver(build)) return false;
      return (await cluster.patch(buildRunOf(buildId), { spec: { status: 'Cancelled' } })) !== undefined;
    },

    async checkBuild(buildId) {
      // Whoever watches it here reads the PipelineRun again at once.
      hints.get(buildId)?.abort();
      hints.delete(buildId);
    },

    async deleteBuild(buildId) {
      const deleted = await cluster.delete(buildRunOf(buildId));
      if (!deleted) return false;
      // Another run of the name would meet TaskRuns and pods of this one, and these hold the claim of the cache.
      const gone = await pollUntil(async () => !(await hasObjects(buildId)), deletionSeconds);
      if (!gone)
        throw new AppError(
          'internal',
          `The pods of the build ${buildId} in the namespace ${buildNamespace} do not end. Delete them.`,
        );
      return true;
    },
  };
  return builds;

  async function start(spec: BuildSpec): Promise<void> {
    if ((await cluster.read(buildRunOf(spec.buildId))) !== undefined) return;
    let facts: SourceFacts;
    try {
      facts = await readSourceFacts(spec.source, spec.env['PAAS_DOCKERFILE']);
      if (facts.dockerfile !== undefined && settings.dockerfiles === undefined)
        throw new BuildFailure('This platform does not build Dockerfiles. Add the files of a language that the buildpacks know.');
    } catch (error) {
      if (!(error instanceof BuildFailure)) throw error;
      await cluster.create(planRefusedRun(spec, error.message));
      return;
    }
    const addresses = { source: await spec.source.createAddress(), callback: await spec.createCallback() };
    const plan = { ...spec, facts, sourceUrl: addresses.source.url, callbackUrl: addresses.callback.url };
    // Another process has started it in this moment.
    if ((await cluster.create(planBuildRun(plan, settings))) === 'existed') return;
    try {
      const { uid = '' } = (await cluster.read(buildRunOf(spec.buildId)))?.metadata ?? {};
      for (const secret of planBuildSecrets(spec, facts, addresses, uid)) await cluster.create(secret);
      await cluster.patch(buildRunOf(spec.buildId), { spec: { status: null } });
    } catch (error) {
      await cluster.delete(buildRunOf(spec.buildId)).catch(() => false);
      throw error;
    }
  }

  async function hasObjects(buildId: BuildId): Promise<boolean> {
    if ((await cluster.read(buildRunOf(buildId))) !== undefined) return true;
    const selection = { namespace: buildNamespace, labels: selectBuild(buildId) };
    for (const kind of [kinds.taskRun, kinds.pod]) if ((await cluster.list({ kind, ...selection })).length > 0) return true;
    return false;
  }

  async function conclude({ run }: BuildObservation, end: Exclude<BuildEnd, { status: 'lost' }>): Promise<BuildOutcome> {
    if (end.status !== 'built') return end;
    const imageUrl = `${end.repository}@${end.digest}`;
    const image = parseImageUrl(settings.repository, imageUrl);
    // The results come from a pod in which the app's code ran, too: they may name an image of this app and no other.
    if (image === undefined || !image.repository.startsWith(`${settings.repository}/${run.metadata.labels?.['app-id']}/`))
      throw new AppError('internal', `The PipelineRun ${run.metadata.name} reports an image that is not of its app.`);
    const chosen = chooseProcesses(await images.readConfig(image), readProcfile(run));
    if ('fault' in chosen) return { status: 'failed', cause: chosen.fault };
    return { status: 'succeeded', imageUrl, digest: end.digest.replace('sha256:', ''), builder: image.builder, ...chosen };
  }
}

/** Also for a build that failed on the side of the platform. */
function isOver(build: BuildObservation): boolean {
  try {
    return readBuildEnd(build) !== undefined;
  } catch {
    return true;
  }
}

function readProcfile({ metadata }: ClusterObject): Procfile | undefined {
  const text = metadata.annotations?.[annotations.procfile];
  return text === undefined ? undefined : (JSON.parse(text) as Procfile);
}
