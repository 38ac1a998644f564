import { Worker } from 'node:worker_threads';
import type { FileBatch, FileFault } from './write-files.ts';

type Answer = PromiseWithResolvers<FileFault | undefined>;

/** Batches that are under way, in the order in which they are answered. */
const waiting: Answer[] = [];
let thread: Worker | undefined;

/**
 * Writes in a thread that all builds share: thousands of small files cost a third of what they do by promises, and
 * whoever waits for a slow disk is not this thread.
 */
export function writeInThread(batch: FileBatch): Promise<FileFault | undefined> {
  thread ??= startThread();
  const answer: Answer = Promise.withResolvers();
  waiting.push(answer);
  thread.ref();
  thread.postMessage(batch);
  return answer.promise;
}

function startThread(): Worker {
  const started = new Worker(new URL('./file-writer-thread.ts', import.meta.url));
  started.on('message', (fault: FileFault | null) => {
    waiting.shift()?.resolve(fault ?? undefined);
    if (waiting.length === 0) started.unref();
  });
  let problem = new Error('the thread that writes files has ended');
  started.on('error', (error) => {
    problem = error instanceof Error ? error : new Error(String(error));
  });
  started.on('exit', () => {
    thread = undefined;
    for (const answer of waiting.splice(0)) answer.reject(problem);
  });
  return started;
}
