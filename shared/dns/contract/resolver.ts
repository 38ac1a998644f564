import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Resolver } from '#shared/dns/resolver.ts';

/** A resolver under test and the DNS that it asks. */
export interface ResolverHarness {
  readonly resolver: Resolver;
  /** Publishes TXT records. A record of more than 255 characters is published in several parts, as DNS requires. */
  publish(name: string, texts: readonly string[]): void;
  stop(): Promise<void>;
}

/** Contract of every resolver. */
export function describeResolver(name: string, start: () => Promise<ResolverHarness>): void {
  describe(`resolver contract: ${name}`, () => {
    let harness: ResolverHarness;
    beforeAll(async () => {
      harness = await start();
    });
    afterAll(() => harness?.stop());

    it('returns every TXT record of a name, long ones as one string', async () => {
      const long = 'x'.repeat(300);
      harness.publish('_paas.www.example.com', ['paas-domain=1', long]);
      expect([...(await harness.resolver.readTexts('_paas.www.example.com'))].toSorted()).toEqual(['paas-domain=1', long]);
    });

    it('returns nothing for a name without records or an invalid name', async () => {
      for (const unknown of ['nobody.example.com', '', 'a..b', 'with space.example.com'])
        expect(await harness.resolver.readTexts(unknown)).toEqual([]);
    });
  });
}
