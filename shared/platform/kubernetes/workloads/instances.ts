import type { InstanceFacts, InstanceState } from '#shared/platform/workloads.ts';
import type { ClusterObject } from '../cluster/cluster.ts';
import { webType } from './workload-plan.ts';

interface ContainerStatus {
  ready?: boolean;
  restartCount?: number;
  state?: {
    running?: { startedAt?: string };
    waiting?: { reason?: string; message?: string };
    terminated?: { exitCode: number; reason?: string };
  };
  lastState?: { terminated?: { exitCode: number; reason?: string } };
}

/** A pod as an instance of a process type. */
export interface Instance extends InstanceFacts {
  podName: string;
  /** Why it does not run; undefined while it does. */
  crash: string | undefined;
}

/** Reasons of a container that waits and will not run by waiting on, in words for the person who pushed. */
const waitingReasons: Readonly<Record<string, string>> = {
  ImagePullBackOff: 'cannot start: its image cannot be pulled',
  ErrImagePull: 'cannot start: its image cannot be pulled',
  InvalidImageName: 'cannot start: the name of its image is not valid',
  CreateContainerConfigError: 'cannot start: its configuration is incomplete',
  CreateContainerError: 'cannot start: its container cannot be created',
};

/**
 * The pods of an app as instances, ordered by name. Within a release the oldest pod of a type is its number 1; a pod that is
 * being stopped comes after all others, so that it takes no number of one that serves.
 */
export function listInstances(pods: readonly ClusterObject[]): Instance[] {
  // Those of a command that is run once are no instances.
  const ofProcesses = pods.filter(({ metadata: { labels } }) => labels?.['job-name'] === undefined);
  const groups = Map.groupBy(
    ofProcesses,
    ({ metadata: { labels } }) => `${labels?.['process-type']} ${labels?.['release-version']}`,
  );
  return [...groups.values()]
    .flatMap((group) => group.toSorted(byAge).map((pod, index) => describeInstance(pod, index + 1)))
    .toSorted(
      (a, b) =>
        a.type.localeCompare(b.type) ||
        Number(a.name.split('.')[1]) - Number(b.name.split('.')[1]) ||
        a.releaseVersion - b.releaseVersion,
    );
}

function byAge(a: ClusterObject, b: ClusterObject): number {
  const rank = ({ metadata }: ClusterObject): string =>
    `${metadata.deletionTimestamp === undefined ? 0 : 1} ${metadata.creationTimestamp} ${metadata.name}`;
  return rank(a) < rank(b) ? -1 : 1;
}

function describeInstance({ metadata, status }: ClusterObject, number: number): Instance {
  const type = metadata.labels?.['process-type'] ?? '';
  const name = `${type}.${number}`;
  const { containerStatuses = [] } = (status ?? {}) as { containerStatuses?: readonly ContainerStatus[] };
  const container = containerStatuses[0] ?? {};
  const ended =
    container.state?.terminated ?? (container.state?.waiting === undefined ? undefined : container.lastState?.terminated);
  const waiting = waitingReasons[container.state?.waiting?.reason ?? ''];
  const crash =
    ended !== undefined
      ? `${name} exited with code ${ended.exitCode}${type === webType ? ' before it listened on PORT' : ''}`
      : waiting !== undefined
        ? `${name} ${waiting}`
        : undefined;
  const state: InstanceState =
    metadata.deletionTimestamp !== undefined
      ? 'stopping'
      : crash !== undefined
        ? 'crashed'
        : container.ready === true
          ? 'up'
          : 'starting';
  return {
    name,
    type,
    state,
    releaseVersion: Number(metadata.labels?.['release-version']),
    startedAt: new Date(container.state?.running?.startedAt ?? metadata.creationTimestamp ?? 0),
    restarts: container.restartCount ?? 0,
    podName: metadata.name,
    crash,
  };
}
