import { Worker } from 'node:worker_threads';
import type { SealAnswer, SealRequest } from './image-worker.ts';

/** A thread that waits for the next image: to start one takes longer than to seal a small image. */
let idle: Worker | undefined;

/** Makes a built tree immutable, in a thread. @throws Error if the thread ends without an answer */
export async function sealImage(request: SealRequest): Promise<SealAnswer> {
  const worker = idle ?? new Worker(new URL('./image-worker.ts', import.meta.url));
  idle = undefined;
  worker.ref();
  const answer = await askOnce(worker, request);
  if (idle === undefined) {
    idle = worker;
    worker.unref();
  } else await worker.terminate();
  return answer;
}

function askOnce(worker: Worker, request: SealRequest): Promise<SealAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<SealAnswer>();
  const end = (): void => reject(new Error('The worker that seals images ended without an answer.'));
  worker.once('message', resolve).once('error', reject).once('exit', end);
  worker.postMessage(request);
  return promise.finally(() => worker.off('message', resolve).off('error', reject).off('exit', end));
}
