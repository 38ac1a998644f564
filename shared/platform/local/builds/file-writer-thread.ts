import { parentPort } from 'node:worker_threads';
import { type FileBatch, writeFiles } from './write-files.ts';

/** A worker thread's main: answers each batch, in order, with its fault or with null. */
parentPort?.on('message', (batch: FileBatch) => parentPort?.postMessage(writeFiles(batch) ?? null));
