import { limits } from '#shared/limits.ts';
import { buildNamespace } from '#shared/names.ts';
import { createBuildOutput } from '#shared/platform/build-output.ts';
import type { Cluster, ClusterObject } from '../cluster/cluster.ts';
import { listSteps, type StepState, stepContainer } from './observe-build.ts';

/** Reads what the steps of one pod print, from the first line on and each line once. */
export interface BuildLogReader {
  /** Whether this is another pod than the one that was read so far. */
  isOther(pod: ClusterObject): boolean;
  /**
   * All lines that have come since the last call, as the user reads them. Of a step that runs it yields what comes, until
   * that ends or the connection breaks; call it again then, with the pod as it is by then.
   * @param follow is called when a step runs; undefined when the build is over, whatever the pod of a lost node says
   */
  read(pod: ClusterObject, follow: ((step: StepState) => AbortSignal) | undefined, signal: AbortSignal): AsyncGenerator<string>;
}

/** Titles of the steps; what the others print is not for the user. */
const titles: Readonly<Record<string, string>> = {
  fetch: 'Fetching the source',
  analyze: 'Looking at the image of the last build',
  detect: 'Detecting buildpacks',
  restore: 'Restoring the build cache',
  build: 'Building',
  export: 'Exporting the image',
  push: 'Pushing the image',
};

/** Two readers of the same pod yield the same lines: core counts them, and another process goes on where one has ended. */
export function createBuildLogReader(cluster: Pick<Cluster, 'streamPodLog'>): BuildLogReader {
  const lines: string[] = [];
  const output = createBuildOutput((line) => lines.push(line), limits.build);
  let uid: string | undefined;
  /** Of the step that is read now: its place, and how many of its lines were read. */
  let position = { step: 0, printed: 0, titled: false };
  let failed = false;

  return {
    isOther: ({ metadata }) => uid !== undefined && metadata.uid !== uid,
    async *read(pod, follow, signal) {
      uid = pod.metadata.uid;
      const steps = listSteps(pod);
      while (!failed) {
        const step = steps[position.step];
        if (step === undefined || (!step.running && step.terminated === undefined)) return;
        if (!position.titled) output.step(titles[step.name] ?? step.name);
        position.titled = true;
        if (titles[step.name] === undefined) lines.length = 0;
        yield* lines.splice(0);
        if (step.terminated === undefined && follow !== undefined) {
          yield* readStep(pod, step, true, AbortSignal.any([signal, follow(step)]));
          return;
        }
        // Whatever was read while it ran: this is all that it has printed.
        yield* readStep(pod, step, false, signal);
        // The steps behind one that has failed print that they were skipped.
        failed = step.terminated?.exitCode !== 0;
        position = { step: position.step + 1, printed: 0, titled: false };
      }
    },
  };

  async function* readStep(
    { metadata }: ClusterObject,
    step: StepState,
    isRunning: boolean,
    signal: AbortSignal,
  ): AsyncGenerator<string> {
    const container = { namespace: buildNamespace, name: metadata.name, container: stepContainer(step.name) };
    let count = 0;
    for await (const line of cluster.streamPodLog(container, isRunning, signal)) {
      count += 1;
      if (count <= position.printed) continue;
      position.printed = count;
      if (titles[step.name] !== undefined) print(line);
      yield* lines.splice(0);
    }
  }

  /** Some buildpacks print steps in the shape of the platform's own. */
  function print(line: string): void {
    const step = /^-----> (\S.*)$/.exec(line)?.[1];
    if (step === undefined) output.tool(line);
    else output.step(step);
  }
}
