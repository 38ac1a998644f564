import { AppError } from '#shared/errors.ts';
import { limits } from '#shared/limits.ts';
import { describeDuration } from '#shared/platform/describe-duration.ts';
import { annotations } from './build-names.ts';
import { startSeconds } from './build-run-plan.ts';
import { type BuildObservation, hasEnded, listSteps, type StepState, succeededOf } from './observe-build.ts';
import { exitCodes } from './task-parts.ts';

/** How a build has ended, before the registry is asked about its image. */
export type BuildEnd =
  | { status: 'built'; repository: string; digest: string }
  | { status: 'failed'; cause: string }
  | { status: 'canceled' }
  /** By the loss of its pod: it can be started again. */
  | { status: 'lost' };

/**
 * Undefined while the build goes on.
 * @throws AppError 'internal' when the cluster, and not the build, has failed
 */
export function readBuildEnd(build: BuildObservation): BuildEnd | undefined {
  const refused = build.run.metadata.annotations?.[annotations.refused];
  if (refused !== undefined) return { status: 'failed', cause: refused };
  // The task's own end: the other task only reports it.
  if (succeededOf(build.taskRun)?.status === 'True') return readResults(build);
  const condition = succeededOf(build.run);
  if (condition?.status === 'False' && condition.reason?.startsWith('Cancelled') === true) return { status: 'canceled' };
  if (isDisrupted(build) && (hasEnded(build.taskRun) || hasEnded(build.run))) return describeEviction(build);
  if (condition?.status !== 'False') return undefined;
  if (condition.reason === 'PipelineRunTimeout' || succeededOf(build.taskRun)?.reason === 'TaskRunTimeout')
    return describeTimeout(build);
  return describeFailure(build);
}

function readResults({ taskRun }: BuildObservation): BuildEnd {
  const { results = [] } = (taskRun?.status ?? {}) as { results?: readonly { name: string; value: string }[] };
  const valueOf = (name: string): string => results.find((result) => result.name === name)?.value.trim() ?? '';
  const [repository, digest] = [valueOf('IMAGE_URL'), valueOf('IMAGE_DIGEST')];
  if (!/^sha256:[0-9a-f]{64}$/.test(digest))
    throw new AppError('internal', 'The build has ended without the digest of an image.');
  return { status: 'built', repository, digest };
}

/** The node took the pod away, or is gone itself. */
function isDisrupted({ taskRun, pod }: BuildObservation): boolean {
  if (succeededOf(taskRun)?.reason === 'PodEvicted') return true;
  const { reason, conditions = [] } = (pod?.status ?? {}) as {
    reason?: string;
    conditions?: readonly { type: string; status: string }[];
  };
  return (
    ['Evicted', 'NodeLost', 'NodeShutdown', 'Terminated', 'Preempting'].includes(reason ?? '') ||
    conditions.some(({ type, status }) => type === 'DisruptionTarget' && status === 'True')
  );
}

/** A pod that has filled the disk would fill the next one, too. */
function describeEviction({ taskRun, pod }: BuildObservation): BuildEnd {
  const { message = '' } = (pod?.status ?? {}) as { message?: string };
  const said = `${succeededOf(taskRun)?.message ?? ''} ${message}`;
  if (!/exceeds the (?:limit|total limit)|ephemeral local storage usage exceeds/i.test(said)) return { status: 'lost' };
  const gibibytes = limits.build.diskBytes / 1024 ** 3;
  return { status: 'failed', cause: `The build wrote more than ${gibibytes} GiB. Remove what the app does not need to run.` };
}

function describeTimeout(build: BuildObservation): BuildEnd {
  const steps = build.pod === undefined ? [] : listSteps(build.pod);
  if (steps.some(({ running, terminated }) => running || terminated !== undefined))
    return { status: 'failed', cause: describeSlowBuild(build) };
  const waiting = succeededOf(build.taskRun)?.message;
  const why = waiting === undefined || waiting === '' ? '' : ` Kubernetes said: ${oneLine(waiting)}`;
  return {
    status: 'failed',
    cause: `The build did not start within ${describeDuration(startSeconds)}: the cluster had no room for it.${why}`,
  };
}

const describeSlowBuild = ({ run }: BuildObservation): string =>
  `The build took longer than ${describeDuration(Number(run.metadata.annotations?.[annotations.timeout]))} and was stopped.`;

function describeFailure(build: BuildObservation): BuildEnd {
  const task = succeededOf(build.taskRun) ?? succeededOf(build.run);
  const { reason = '', message = '' } = task ?? {};
  if (message.includes('exceeded the specified timeout limit')) return { status: 'failed', cause: describeSlowBuild(build) };
  const step = (build.pod === undefined ? [] : listSteps(build.pod)).find(
    ({ terminated }) => terminated !== undefined && terminated.exitCode !== 0,
  );
  if (step?.terminated?.reason === 'OOMKilled' || reason === 'StepOOM' || message.includes('OOMKilled'))
    return {
      status: 'failed',
      cause: 'The build needed more memory than it may have, and was stopped. Make it use less, or ask the operator for more.',
    };
  if (step !== undefined && succeededOf(build.taskRun)?.status === 'False') return describeStep(step);
  throw new AppError('internal', describePodFailure(reason, oneLine(message)));
}

/** Of a build whose pod did not run: what Kubernetes refused, and what the operator does about it. */
function describePodFailure(reason: string, message: string): string {
  const said = message === '' ? '' : `: ${message.replace(/\.$/, '')}`;
  const [what, fix] = podFailures[reason] ?? [`Tekton could not run the build (${reason})`, ''];
  return `${what}${said}.${fix === '' ? '' : ` ${fix}`}`;
}

const podFailures: Readonly<Record<string, readonly [what: string, fix: string]>> = {
  PodAdmissionFailed: [
    'Kubernetes refused to create the pod of the build in the namespace paas-build',
    'Set set-security-context in the ConfigMap feature-flags of Tekton to "true", or lower the pod security level of the namespace.',
  ],
  TaskRunImagePullFailed: [
    'An image of the build pipeline cannot be pulled',
    "Check the names of the builder's images and what the nodes may pull.",
  ],
  CreateContainerConfigError: ['The pod of the build refers to something that does not exist in paas-build', ''],
  PodCreationFailed: ['Kubernetes refused to create the pod of the build in the namespace paas-build', ''],
  ExceededResourceQuota: [
    'The quota of the namespace paas-build does not allow another build',
    'Raise the quota, or wait until other builds have ended.',
  ],
};

function describeStep({ name, terminated }: StepState): BuildEnd {
  const code = terminated?.exitCode ?? 0;
  const failed = (cause: string): BuildEnd => ({ status: 'failed', cause });
  switch (name) {
    case 'fetch':
      // A pod that takes the place of another finds that its token was used.
      if (code === exitCodes.sourceGone) return { status: 'lost' };
      throw new AppError(
        'internal',
        `The build could not fetch its source from the control plane (exit code ${code}). Check that pods in paas-build reach its address.`,
      );
    case 'detect':
      if (code === 20 || code === 21)
        return failed('No language detected in the source. Add the files of a language that the buildpacks know, or a Procfile.');
      return failed(`A buildpack failed while it looked at the source (exit code ${code}). The log above says why.`);
    case 'build':
      return failed(`The build failed with exit code ${code}. The log above says why.`);
    case 'push':
      if (code === exitCodes.imageBroken) return failed('The image that the Dockerfile makes is not valid.');
      break;
    default:
  }
  throw new AppError(
    'internal',
    `The step ${name} of the build failed with exit code ${code}. Check the registry, its credentials and the builder image.`,
  );
}

const oneLine = (text: string): string =>
  text
    .replaceAll(/\s*\n\s*/g, ' ')
    .trim()
    .slice(0, 1000);
