import { abandonedSeconds, type IdempotencyKeys, type KeptAnswer, keptSeconds } from '#shared/idempotency/idempotency.ts';

interface Entry {
  requestHash: string;
  claimedAt: number;
  resourceId: string;
  answer?: KeptAnswer;
}

/** In-memory idempotency keys of one process, for tests. @param now current time in milliseconds since the epoch */
export function createFakeIdempotencyKeys(now: () => number = Date.now): IdempotencyKeys {
  const entries = new Map<string, Entry>();
  const nameOf = (subject: string, key: string): string => JSON.stringify([subject, key]);
  const over = (entry: Entry): boolean =>
    now() - entry.claimedAt >= (entry.answer === undefined ? abandonedSeconds : keptSeconds) * 1000;
  return {
    async claim({ subject, key, requestHash }) {
      const name = nameOf(subject, key);
      const entry = entries.get(name);
      if (entry === undefined || over(entry)) {
        const again = entry?.requestHash === requestHash && entry.answer === undefined;
        const resourceId = again ? entry.resourceId : crypto.randomUUID();
        entries.set(name, { requestHash, claimedAt: now(), resourceId });
        return { state: 'claimed', resourceId };
      }
      if (entry.requestHash !== requestHash) return { state: 'mismatch' };
      return entry.answer === undefined ? { state: 'running' } : { state: 'answered', answer: entry.answer };
    },
    async complete({ subject, key, requestHash }, answer) {
      const entry = entries.get(nameOf(subject, key));
      if (entry?.requestHash === requestHash) entry.answer ??= answer;
    },
    async release({ subject, key, requestHash }) {
      const entry = entries.get(nameOf(subject, key));
      if (entry?.requestHash === requestHash && entry.answer === undefined) entries.delete(nameOf(subject, key));
    },
    async abandon({ subject, key, requestHash }) {
      const entry = entries.get(nameOf(subject, key));
      if (entry?.requestHash === requestHash && entry.answer === undefined) entry.claimedAt = now() - abandonedSeconds * 1000;
    },
    async sweep() {
      const old = [...entries].filter(([, entry]) => over(entry));
      for (const [name] of old) entries.delete(name);
      return old.length;
    },
  };
}
