import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { RolloutFacts } from '#shared/platform/rollouts.ts';
import type { WorkloadAnswer, WorkloadCall } from '#test/support/workloads/workload-process.ts';

export interface WorkloadProcess {
  call<Result>(call: WorkloadCall): Promise<Result>;
  /** Facts of rollouts as they come. */
  onFact(listener: (fact: RolloutFacts) => void): void;
  /** kill -9. */
  kill(): Promise<void>;
  /** Leaves apps running, and ends. */
  detach(): Promise<void>;
  readonly pid: number;
}

export async function startWorkloadProcess(dataDir: string, controlSocket: string): Promise<WorkloadProcess> {
  const child = fork(new URL('./workload-process.ts', import.meta.url), [dataDir, controlSocket], { serialization: 'advanced' });
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  const listeners: ((fact: RolloutFacts) => void)[] = [];
  let nextId = 1;
  const ready = Promise.withResolvers<void>();
  child.on('message', (answer: WorkloadAnswer) => {
    if ('ready' in answer) return ready.resolve();
    if ('fact' in answer) {
      for (const listener of listeners) listener(answer.fact as RolloutFacts);
      return;
    }
    const call = waiting.get(answer.id);
    waiting.delete(answer.id);
    if ('problem' in answer) call?.reject(new Error(answer.problem));
    else call?.resolve(answer.result);
  });
  child.once('exit', (code, signal) => {
    ready.reject(new Error(`The host ended with ${code ?? signal} before it was ready.`));
    for (const { reject } of waiting.values()) reject(new Error('The host ended.'));
  });
  await ready.promise;
  const call = <Result>(what: WorkloadCall): Promise<Result> => {
    const id = nextId++;
    const answer = Promise.withResolvers<unknown>();
    waiting.set(id, answer);
    child.send({ id, call: what });
    return answer.promise as Promise<Result>;
  };
  return {
    call,
    pid: child.pid ?? 0,
    onFact: (listener) => void listeners.push(listener),
    async kill() {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
    async detach() {
      await call({ op: 'detach' });
      const exited = once(child, 'exit');
      child.disconnect();
      await exited;
    },
  };
}
