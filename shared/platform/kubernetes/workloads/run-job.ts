import type { V1Job } from '@kubernetes/client-node';
import { AppError } from '#shared/errors.ts';
import type { LineSink } from '#shared/platform/builds.ts';
import type { CommandRun } from '#shared/platform/workloads.ts';
import type { Cluster, ClusterObject } from '../cluster/cluster.ts';
import { kinds } from '../cluster/kinds.ts';
import { pause } from '../cluster/pause.ts';
import { appLabels, processLabels, tenantNamespace } from '../names.ts';
import { planPod, type WorkloadSettings } from './workload-plan.ts';

const lookMilliseconds = 500;
const longestSeconds = 3600;
/** For whoever follows a run that has ended. */
const keptSeconds = 3600;
/** As many lines as are read again at each look, which is once in half a second. */
const linesALook = 5000;

/** The Job of a run: one attempt, in the environment of the release. */
export function planJob({ id, spec, command }: CommandRun, settings: WorkloadSettings): ClusterObject {
  const labels = { ...appLabels(spec.appId), ...processLabels, 'process-type': 'release' };
  const pod = planPod(spec, { type: 'release', command }, settings, labels);
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: `run-${id}`, namespace: tenantNamespace(spec.tenantId), labels: appLabels(spec.appId) },
    spec: {
      backoffLimit: 0,
      activeDeadlineSeconds: longestSeconds,
      ttlSecondsAfterFinished: keptSeconds,
      template: {
        ...pod,
        spec: { ...pod.spec, restartPolicy: 'Never', containers: pod.spec?.containers ?? [] },
      },
    },
  } satisfies V1Job;
}

/** Creates the Job, or takes up one that exists, and follows it to its end. */
export async function runJob(
  { cluster, settings }: { cluster: Cluster; settings: WorkloadSettings },
  run: CommandRun,
  line: LineSink,
  signal: AbortSignal,
): Promise<number> {
  const job = planJob(run, settings);
  const namespace = tenantNamespace(run.spec.tenantId);
  const reference = { kind: kinds.job, name: job.metadata.name, namespace };
  await cluster.create(job);
  let printed = 0;
  for (;;) {
    const [pod] = await cluster.list({ kind: kinds.pod, namespace, labels: { 'job-name': reference.name } });
    const code = exitCode(pod);
    if (pod !== undefined) {
      const text = await cluster.readPodLog({ namespace, name: pod.metadata.name, container: 'process' }, linesALook);
      const lines = (text ?? '').split('\n');
      // What follows the last newline is not a line yet, unless nothing follows any more.
      if (code === undefined || lines.at(-1) === '') lines.pop();
      for (const each of lines.slice(printed)) line(each);
      printed = Math.max(printed, lines.length);
    }
    if (code !== undefined) return code;
    if (signal.aborted) {
      await cluster.delete(reference);
      signal.throwIfAborted();
    }
    if (pod === undefined && hasFailed(await cluster.read(reference)))
      throw new AppError(
        'internal',
        `The Job ${reference.name} in the namespace ${namespace} has failed before its pod started.`,
      );
    await pause(lookMilliseconds, signal);
  }
}

function exitCode(pod: ClusterObject | undefined): number | undefined {
  const { containerStatuses = [] } = (pod?.status ?? {}) as {
    containerStatuses?: readonly { state?: { terminated?: { exitCode: number } } }[];
  };
  return containerStatuses[0]?.state?.terminated?.exitCode;
}

function hasFailed(job: ClusterObject | undefined): boolean {
  const { conditions = [] } = (job?.status ?? {}) as { conditions?: readonly { type: string; status: string }[] };
  return job === undefined || conditions.some(({ type, status }) => type === 'Failed' && status === 'True');
}
