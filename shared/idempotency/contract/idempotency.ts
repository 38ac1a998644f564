import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { abandonedSeconds, type IdempotencyKeys, type KeyedRequest, keptSeconds } from '#shared/idempotency/idempotency.ts';

/** What every driver of the keys does. @param create an empty one on the time of `Date.now`, which the suite holds */
export function describeIdempotencyKeys(name: string, create: () => IdempotencyKeys): void {
  describe(`idempotency contract: ${name}`, () => {
    const answer = { status: 201, body: '{"data":{"name":"hello"}}' };
    let keys: IdempotencyKeys;
    let request: KeyedRequest;
    beforeEach(() => {
      vi.useFakeTimers({ toFake: ['Date'], now: new Date('2026-03-01T12:00:00Z') });
      keys = create();
      request = { subject: crypto.randomUUID(), key: 'key-1', requestHash: 'a' };
    });
    afterEach(() => {
      vi.useRealTimers();
    });
    const advance = (seconds: number): void => {
      vi.setSystemTime(Date.now() + seconds * 1000);
    };

    it('lets exactly one of many at once go on', async () => {
      const claims = await Promise.all(Array.from({ length: 20 }, () => keys.claim(request)));
      expect(claims.map((claim) => claim.state).sort()).toEqual(['claimed', ...new Array<string>(19).fill('running')]);
    });

    it('gives the first answer again, for a day', async () => {
      await keys.claim(request);
      await keys.complete(request, answer);
      advance(keptSeconds - 1);
      expect(await keys.claim(request)).toEqual({ state: 'answered', answer });
      advance(1);
      expect(await keys.claim(request)).toMatchObject({ state: 'claimed' });
    });

    it('refuses the key to another request, before and after the answer', async () => {
      await keys.claim(request);
      expect(await keys.claim({ ...request, requestHash: 'b' })).toEqual({ state: 'mismatch' });
      await keys.complete(request, answer);
      expect(await keys.claim({ ...request, requestHash: 'b' })).toEqual({ state: 'mismatch' });
    });

    it('keeps subjects apart', async () => {
      await keys.claim(request);
      await keys.complete(request, answer);
      expect(await keys.claim({ ...request, subject: crypto.randomUUID(), requestHash: 'b' })).toMatchObject({
        state: 'claimed',
      });
    });

    it('takes a key back after a refusal, and then lets another request have it', async () => {
      await keys.claim(request);
      await keys.release(request);
      expect(await keys.claim({ ...request, requestHash: 'b' })).toMatchObject({ state: 'claimed' });
    });

    it('hands on what a dead process left, and ignores it should it come back', async () => {
      await keys.claim(request);
      advance(abandonedSeconds - 1);
      expect(await keys.claim(request)).toEqual({ state: 'running' });
      advance(1);
      const other = { ...request, requestHash: 'b' };
      expect(await keys.claim(other)).toMatchObject({ state: 'claimed' });
      await keys.complete(request, answer);
      await keys.release(request);
      expect(await keys.claim(other)).toEqual({ state: 'running' });
    });

    const resourceOf = async (claimed = request): Promise<string | undefined> => {
      const claim = await keys.claim(claimed);
      return claim.state === 'claimed' ? claim.resourceId : undefined;
    };

    it('gives a request that was left by a dead process the id again that it had, so that what it made is found', async () => {
      const first = await resourceOf();
      expect(first).toMatch(/^[0-9a-f-]{36}$/);
      advance(abandonedSeconds);
      expect(await resourceOf()).toBe(first);
    });

    it('hands a request whose end is not known on at once, with the id that it had', async () => {
      const first = await resourceOf();
      await keys.abandon({ ...request, requestHash: 'b' });
      expect(await resourceOf()).toBeUndefined();
      await keys.abandon(request);
      expect(await resourceOf()).toBe(first);
      expect(await resourceOf()).toBeUndefined();
    });

    it('gives another id after a refusal, to another request, and once the answer is forgotten', async () => {
      const ids = [await resourceOf()];
      await keys.release(request);
      ids.push(await resourceOf());
      advance(abandonedSeconds);
      ids.push(await resourceOf({ ...request, requestHash: 'b' }));
      await keys.complete({ ...request, requestHash: 'b' }, answer);
      advance(keptSeconds);
      ids.push(await resourceOf({ ...request, requestHash: 'b' }));
      expect(new Set(ids).size).toBe(4);
      expect(ids).not.toContain(undefined);
    });

    it('never takes an answer back', async () => {
      await keys.claim(request);
      await keys.complete(request, answer);
      await keys.release(request);
      await keys.abandon(request);
      expect(await keys.claim(request)).toEqual({ state: 'answered', answer });
    });

    it('forgets what is older than a day', async () => {
      advance(4 * keptSeconds);
      await keys.sweep();
      await keys.claim(request);
      await keys.complete(request, answer);
      expect(await keys.sweep()).toBe(0);
      advance(keptSeconds + 1);
      expect(await keys.sweep()).toBe(1);
    });
  });
}
