import type { BuildId } from '#shared/ids.ts';
import { buildNamespace } from '#shared/names.ts';
import type { Cluster, ClusterObject } from '../cluster/cluster.ts';
import { kinds } from '../cluster/kinds.ts';
import { buildRunOf, buildTask, selectBuild } from './build-names.ts';

/** A build as it is on the cluster at one moment. */
export interface BuildObservation {
  run: ClusterObject;
  /** Of the task that builds. */
  taskRun: ClusterObject | undefined;
  /** Its pod; the newest one, when there was another before. */
  pod: ClusterObject | undefined;
}

/** Of PipelineRuns and TaskRuns. */
export interface Condition {
  /** 'True' for success, 'False' for failure, 'Unknown' while it goes on. */
  status: string;
  reason?: string;
  message?: string;
}

/** Undefined for a build that the cluster does not know, or not any more. */
export async function observeBuild(cluster: Cluster, buildId: BuildId): Promise<BuildObservation | undefined> {
  const run = await cluster.read(buildRunOf(buildId));
  if (run === undefined || run.metadata.deletionTimestamp !== undefined) return undefined;
  const { childReferences = [] } = (run.status ?? {}) as {
    childReferences?: readonly { kind?: string; name: string; pipelineTaskName?: string }[];
  };
  const name = childReferences.find(({ pipelineTaskName }) => pipelineTaskName === buildTask)?.name;
  if (name === undefined) return { run, taskRun: undefined, pod: undefined };
  const [taskRun, pods] = await Promise.all([
    cluster.read({ kind: kinds.taskRun, name, namespace: buildNamespace }),
    cluster.list({ kind: kinds.pod, namespace: buildNamespace, labels: { ...selectBuild(buildId), 'tekton.dev/taskRun': name } }),
  ]);
  const [pod] = pods.toSorted((a, b) => ((a.metadata.creationTimestamp ?? '') < (b.metadata.creationTimestamp ?? '') ? 1 : -1));
  return { run, taskRun, pod };
}

/** The condition `Succeeded`; undefined until the controller has seen the object. */
export function succeededOf(object: ClusterObject | undefined): Condition | undefined {
  const { conditions = [] } = (object?.status ?? {}) as { conditions?: readonly (Condition & { type: string })[] };
  return conditions.find(({ type }) => type === 'Succeeded');
}

/** Whether a PipelineRun or TaskRun is over. */
export function hasEnded(object: ClusterObject | undefined): boolean {
  const status = succeededOf(object)?.status;
  return status === 'True' || status === 'False';
}

/** A container of a pod that is a step of the task. */
export interface StepState {
  /** Without Tekton's prefix: 'build'. */
  name: string;
  image: string;
  running: boolean;
  terminated: { exitCode: number; reason?: string; startedAt?: string; finishedAt?: string } | undefined;
}

const prefix = 'step-';

/** The steps of a pod in their order. Tekton starts all containers at once; each waits for the one before. */
export function listSteps(pod: ClusterObject): StepState[] {
  const { containers = [] } = (pod.spec ?? {}) as { containers?: readonly { name: string; image?: string }[] };
  const { containerStatuses = [] } = (pod.status ?? {}) as {
    containerStatuses?: readonly {
      name: string;
      state?: { running?: object; terminated?: NonNullable<StepState['terminated']> };
    }[];
  };
  return containers
    .filter(({ name }) => name.startsWith(prefix))
    .map(({ name, image = '' }) => {
      const state = containerStatuses.find((status) => status.name === name)?.state;
      return {
        name: name.slice(prefix.length),
        image,
        running: state?.running !== undefined,
        terminated: state?.terminated,
      };
    });
}

/** The container of a step. */
export function stepContainer(name: string): string {
  return `${prefix}${name}`;
}
