import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { abandonedSeconds, type IdempotencyKeys, type KeyedRequest, keptSeconds } from '#shared/idempotency/idempotency.ts';

/** Contract of every idempotency driver. @param create makes an empty driver that reads `Date.now`, which the suite controls */
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

    it('lets exactly one of many concurrent claims proceed', async () => {
      const claims = await Promise.all(Array.from({ length: 20 }, () => keys.claim(request)));
      expect(claims.map((claim) => claim.state).sort()).toEqual(['claimed', ...new Array<string>(19).fill('running')]);
    });

    it('returns the first answer again for a day', async () => {
      await keys.claim(request);
      await keys.complete(request, answer);
      advance(keptSeconds - 1);
      expect(await keys.claim(request)).toEqual({ state: 'answered', answer });
      advance(1);
      expect(await keys.claim(request)).toMatchObject({ state: 'claimed' });
    });

    it('refuses the key for a different request, before and after the answer', async () => {
      await keys.claim(request);
      expect(await keys.claim({ ...request, requestHash: 'b' })).toEqual({ state: 'mismatch' });
      await keys.complete(request, answer);
      expect(await keys.claim({ ...request, requestHash: 'b' })).toEqual({ state: 'mismatch' });
    });

    it('does not share keys between subjects', async () => {
      await keys.claim(request);
      await keys.complete(request, answer);
      expect(await keys.claim({ ...request, subject: crypto.randomUUID(), requestHash: 'b' })).toMatchObject({
        state: 'claimed',
      });
    });

    it('frees a key after a refusal, for any request', async () => {
      await keys.claim(request);
      await keys.release(request);
      expect(await keys.claim({ ...request, requestHash: 'b' })).toMatchObject({ state: 'claimed' });
    });

    it('hands the claim of a crashed process over, and ignores that process if it comes back', async () => {
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

    it('gives the repeated request of a crashed process the same resource id, so that its resource is found', async () => {
      const first = await resourceOf();
      expect(first).toMatch(/^[0-9a-f-]{36}$/);
      advance(abandonedSeconds);
      expect(await resourceOf()).toBe(first);
    });

    it('hands an abandoned request over at once, with the same resource id', async () => {
      const first = await resourceOf();
      await keys.abandon({ ...request, requestHash: 'b' });
      expect(await resourceOf()).toBeUndefined();
      await keys.abandon(request);
      expect(await resourceOf()).toBe(first);
      expect(await resourceOf()).toBeUndefined();
    });

    it('gives a new resource id after a refusal, to a different request, and after the answer expired', async () => {
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

    it('never removes a stored answer on release or abandon', async () => {
      await keys.claim(request);
      await keys.complete(request, answer);
      await keys.release(request);
      await keys.abandon(request);
      expect(await keys.claim(request)).toEqual({ state: 'answered', answer });
    });

    it('sweeps keys older than a day', async () => {
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
