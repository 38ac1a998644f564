import type { EventEmitter } from 'node:events';

/** Counts one more for `key`, until `connection` closes. Keys with nothing open are not kept. */
export function countUntilClosed(counts: Map<string, number>, key: string, connection: EventEmitter): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
  connection.once('close', () => {
    const left = (counts.get(key) ?? 1) - 1;
    if (left === 0) counts.delete(key);
    else counts.set(key, left);
  });
}
