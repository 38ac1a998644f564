/**
 * Tekton's controller as a script: it reconciles PipelineRuns with one task and a `finally` task as Tekton does (read in its sources,
 * pkg/reconciler and pkg/pod of August 2026): TaskRuns and their pods with labels and owners, `childReferences`, conditions with their
 * reasons, results, time-outs of steps, cancellation. What a step does is the test's business.
 */
import type { Cluster, ClusterObject } from '../cluster/cluster.ts';
import { kinds } from '../cluster/kinds.ts';
import { podSpecOf, type TaskSpec, type TaskStep } from './tekton-pods.ts';

/** A step that is to be run. */
export interface StepRun {
  step: TaskStep;
  run: ClusterObject;
  /** Prints a line to the step's log. */
  print(line: string): Promise<void>;
  /** Aborts with the build, and after the step's time. */
  signal: AbortSignal;
}

/** How a step has ended. */
export interface StepResult {
  exitCode: number;
  /** Of the container, as 'OOMKilled'. */
  reason?: string;
  results?: Readonly<Record<string, string>>;
}

export interface ScriptedTektonOptions {
  cluster: Cluster;
  namespace: string;
  runStep(step: StepRun): Promise<StepResult>;
  /** Adds a line to the log of a container. */
  print(pod: { namespace: string; name: string; container: string }, line: string): Promise<void>;
  /** Called with each pod that was created: resolves once its containers run, or do not. */
  started(pod: ClusterObject): Promise<void>;
  /** Where no garbage collector runs: removes what a PipelineRun owned when it is gone. */
  collectsGarbage: boolean;
  /** Tekton's flag `set-security-context`. */
  setsSecurityContext?: boolean;
}

/** A controller that runs. */
export interface ScriptedTekton {
  /** Ends the pod of a task as the loss of its node does. */
  evict(taskRun: string, message: string): Promise<void>;
  stop(): Promise<void>;
}

type Fields = Readonly<Record<string, unknown>>;
type RunSpec = {
  status?: string;
  workspaces?: readonly Fields[];
  taskRunTemplate?: { podTemplate?: Fields };
  pipelineSpec: { tasks: readonly PipelineTask[]; finally?: readonly PipelineTask[] };
};
interface PipelineTask {
  name: string;
  taskSpec: TaskSpec;
}

export function startScriptedTekton(options: ScriptedTektonOptions): ScriptedTekton {
  const { cluster, namespace } = options;
  const over = new AbortController();
  /** By name of the PipelineRun: aborts when it is canceled or deleted. */
  const running = new Map<string, AbortController>();
  const work = new Set<Promise<void>>();
  const begin = (task: Promise<void>): void => {
    const done = task.catch(() => undefined).finally(() => work.delete(done));
    work.add(done);
  };

  const watching = (async () => {
    for await (const { type, object } of cluster.watch({ kind: kinds.pipelineRun, namespace }, over.signal)) {
      const known = running.get(object.metadata.name);
      const { status } = (object.spec ?? {}) as RunSpec;
      if (type === 'DELETED') {
        known?.abort(new Error('deleted'));
        running.delete(object.metadata.name);
        if (options.collectsGarbage) begin(collect(object));
      } else if (status === 'Cancelled') {
        if (known === undefined) begin(endCanceled(object));
        else known.abort(new Error('canceled'));
      } else if (known === undefined && status !== 'PipelineRunPending') {
        const ending = new AbortController();
        running.set(object.metadata.name, ending);
        begin(reconcile(object, ending.signal));
      }
    }
  })().catch(() => undefined);

  async function reconcile(run: ClusterObject, signal: AbortSignal): Promise<void> {
    const { pipelineSpec } = run.spec as RunSpec;
    const startTime = new Date().toISOString();
    const childReferences: object[] = [];
    const setStatus = (condition: Fields, more: Fields = {}): Promise<unknown> =>
      cluster.patch(
        { kind: kinds.pipelineRun, name: run.metadata.name, namespace },
        { status: { startTime, childReferences, conditions: [{ type: 'Succeeded', ...condition }], ...more } },
        'status',
      );
    const [task] = pipelineSpec.tasks;
    if (task === undefined) return;
    await setStatus({ status: 'Unknown', reason: 'Started', message: '' });
    const outcome = await runTask(run, task, signal, async (reference) => {
      childReferences.push(reference);
      await setStatus({
        status: 'Unknown',
        reason: 'Running',
        message: 'Tasks Completed: 0 (Failed: 0, Cancelled 0), Incomplete: 1, Skipped: 0',
      });
    });
    const completionTime = (): Fields => ({ completionTime: new Date().toISOString() });
    if (signal.aborted) {
      await setStatus(
        { status: 'False', reason: 'Cancelled', message: `PipelineRun "${run.metadata.name}" was cancelled` },
        completionTime(),
      );
      return;
    }
    for (const last of pipelineSpec.finally ?? [])
      await runTask(run, last, signal, async (reference) => void childReferences.push(reference), outcome);
    const failed = outcome === 'Failed' ? 1 : 0;
    const message = `Tasks Completed: 2 (Failed: ${failed}, Cancelled 0), Skipped: 0`;
    await setStatus(
      failed === 0 ? { status: 'True', reason: 'Succeeded', message } : { status: 'False', reason: 'Failed', message },
      completionTime(),
    );
  }

  async function endCanceled({ metadata }: ClusterObject): Promise<void> {
    const condition = {
      type: 'Succeeded',
      status: 'False',
      reason: 'Cancelled',
      message: `PipelineRun "${metadata.name}" was cancelled`,
    };
    running.set(metadata.name, new AbortController());
    await cluster.patch(
      { kind: kinds.pipelineRun, name: metadata.name, namespace },
      { status: { conditions: [condition] } },
      'status',
    );
  }

  async function runTask(
    run: ClusterObject,
    task: PipelineTask,
    signal: AbortSignal,
    refer: (reference: object) => Promise<void>,
    before = '',
  ): Promise<'Succeeded' | 'Failed'> {
    const name = `${run.metadata.name}-${task.name}`;
    const labels = { ...run.metadata.labels, 'tekton.dev/pipelineRun': run.metadata.name, 'tekton.dev/pipelineTask': task.name };
    await cluster.create({
      apiVersion: 'tekton.dev/v1',
      kind: 'TaskRun',
      metadata: { name, namespace, labels, ownerReferences: [ownerOf(run)] },
      spec: { taskSpec: task.taskSpec },
    });
    await refer({ apiVersion: 'tekton.dev/v1', kind: 'TaskRun', name, pipelineTaskName: task.name });
    const reference = { kind: kinds.taskRun, name, namespace };
    const taskRun = await cluster.read(reference);
    if (taskRun === undefined) return 'Failed';
    const setStatus = (condition: Fields, more: Fields = {}): Promise<unknown> =>
      cluster.patch(reference, { status: { conditions: [{ type: 'Succeeded', ...condition }], ...more } }, 'status');
    const fail = async (reason: string, message: string): Promise<'Failed'> => {
      await setStatus({ status: 'False', reason, message }, { completionTime: new Date().toISOString() });
      return 'Failed';
    };

    const { podTemplate = {} } = (run.spec as RunSpec).taskRunTemplate ?? {};
    const spec = podSpecOf(
      task.taskSpec,
      (run.spec as RunSpec).workspaces ?? [],
      podTemplate,
      options.setsSecurityContext !== false,
    );
    const pod: ClusterObject = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: `${name}-pod`,
        namespace,
        labels: { ...labels, 'tekton.dev/taskRun': name },
        ownerReferences: [ownerOf(taskRun)],
      },
      spec,
    };
    try {
      await cluster.create(pod);
    } catch (error) {
      const said = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
      if (/violates PodSecurity/.test(said)) return fail('PodAdmissionFailed', said);
      if (!/exceeded quota/.test(said)) return fail('PodCreationFailed', said);
      // It would try again after a minute, without an end.
      await setStatus({
        status: 'Unknown',
        reason: 'ExceededResourceQuota',
        message: `TaskRun Pod exceeded available resources: ${said}`,
      });
      await untilAborted(AbortSignal.any([signal, over.signal]));
      return 'Failed';
    }
    await setStatus({ status: 'Unknown', reason: 'Pending', message: 'Pending' }, { podName: pod.metadata.name });
    await options.started(pod);
    await setStatus({ status: 'Unknown', reason: 'Running', message: 'Not all Steps in the Task have finished executing' });
    const outcome = await runSteps(run, task.taskSpec, pod, AbortSignal.any([signal, over.signal]), before);
    if (signal.aborted) {
      await cluster.delete({ kind: kinds.pod, name: pod.metadata.name, namespace });
      return fail('TaskRunCancelled', `TaskRun "${name}" was cancelled. `);
    }
    if ('reason' in outcome) return fail(outcome.reason, outcome.message);
    const results = Object.entries(outcome.results).map(([key, value]) => ({ name: key, type: 'string', value }));
    await setStatus(
      { status: 'True', reason: 'Succeeded', message: 'All Steps have completed executing' },
      { results, completionTime: new Date().toISOString() },
    );
    return 'Succeeded';
  }

  async function runSteps(
    run: ClusterObject,
    { steps }: TaskSpec,
    pod: ClusterObject,
    signal: AbortSignal,
    before: string,
  ): Promise<{ results: Readonly<Record<string, string>> } | { reason: string; message: string }> {
    const startedAt = new Date().toISOString();
    const reference = { kind: kinds.pod, name: pod.metadata.name, namespace };
    const ended: Fields[] = [];
    const setPod = (phase: string): Promise<unknown> => {
      const containerStatuses = steps.map(({ name, image }, index) => ({
        name: `step-${name}`,
        image,
        imageID: image,
        ready: ended[index] === undefined,
        restartCount: 0,
        state: ended[index] === undefined ? { running: { startedAt } } : { terminated: ended[index] },
      }));
      return cluster.patch(reference, { status: { phase, containerStatuses } }, 'status');
    };
    let results: Readonly<Record<string, string>> = {};
    let failure: { reason: string; message: string } | undefined;
    await setPod('Running');
    for (const step of steps) {
      if (failure !== undefined) {
        ended.push({ exitCode: 1, reason: 'Error', startedAt, finishedAt: new Date().toISOString() });
        continue;
      }
      const seconds = Number(/^(\d+)s$/.exec(step.timeout ?? '')?.[1] ?? 3600);
      const timeout = AbortSignal.timeout(seconds * 1000);
      const container = { namespace, name: pod.metadata.name, container: `step-${step.name}` };
      const stepRun: StepRun = {
        step: {
          ...step,
          env: (step.env ?? []).map((each) => (each.value === '$(params.status)' ? { ...each, value: before } : each)),
        },
        run,
        print: (line) => options.print(container, line),
        signal: AbortSignal.any([signal, timeout]),
      };
      const result = await Promise.race([
        options.runStep(stepRun),
        untilAborted(stepRun.signal).then((): StepResult => ({ exitCode: 1 })),
      ]);
      if (signal.aborted) return { reason: 'Failed', message: '' };
      results = { ...results, ...result.results };
      ended.push({
        exitCode: result.exitCode,
        reason: result.reason ?? (result.exitCode === 0 ? 'Completed' : 'Error'),
        startedAt,
        finishedAt: new Date().toISOString(),
      });
      if (result.exitCode !== 0 && step.onError !== 'continue') failure = describe(step.name, result, timeout.aborted);
      await setPod('Running');
    }
    await setPod(failure === undefined ? 'Succeeded' : 'Failed');
    return failure ?? { results };
  }

  async function collect({ metadata }: ClusterObject): Promise<void> {
    const owned = new Set([metadata.uid]);
    for (const kind of [kinds.secret, kinds.taskRun, kinds.pod])
      for (const { metadata: child } of await cluster.list({ kind, namespace }))
        if (child.ownerReferences?.some(({ uid }) => owned.has(uid)) === true) {
          owned.add(child.uid);
          await cluster.delete({ kind, name: child.name, namespace });
        }
  }

  return {
    async evict(taskRun, message) {
      const name = `${taskRun}-pod`;
      const status = { phase: 'Failed', reason: 'Evicted', message };
      await cluster.patch({ kind: kinds.pod, name, namespace }, { status }, 'status');
      const condition = { type: 'Succeeded', status: 'False', reason: 'PodEvicted', message };
      await cluster.patch({ kind: kinds.taskRun, name: taskRun, namespace }, { status: { conditions: [condition] } }, 'status');
    },
    async stop() {
      over.abort(new Error('The controller has ended.'));
      for (const ending of running.values()) ending.abort();
      await watching;
      await Promise.all(work);
    },
  };
}

function describe(name: string, { exitCode, reason }: StepResult, isSlow: boolean): { reason: string; message: string } {
  if (isSlow)
    return { reason: 'StepFailed', message: `"step-${name}" exited because the step exceeded the specified timeout limit` };
  const ended = `"step-${name}" exited with code ${exitCode}`;
  if (reason === 'OOMKilled') return { reason: 'StepOOM', message: `${ended}: OOMKilled` };
  return { reason: 'StepFailed', message: `${ended}: ${reason ?? 'Error'}` };
}

const ownerOf = ({ apiVersion, kind, metadata }: ClusterObject) => ({
  apiVersion,
  kind,
  name: metadata.name,
  uid: metadata.uid ?? '',
  controller: true,
  blockOwnerDeletion: true,
});

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
