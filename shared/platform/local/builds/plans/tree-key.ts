import { createHash } from 'node:crypto';

/** The key of cached trees whose content follows from these facts, which JSON can hold. */
export function treeKey(...facts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(facts)).digest('hex');
}
