import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Resolver } from '#shared/dns/resolver.ts';

export interface ResolverHarness {
  readonly resolver: Resolver;
  /** Puts TXT records into the DNS. A record of more than 255 characters stands there in several pieces. */
  publish(name: string, texts: readonly string[]): void;
  stop(): Promise<void>;
}

/** What every resolver does. */
export function describeResolver(name: string, start: () => Promise<ResolverHarness>): void {
  describe(`resolver contract: ${name}`, () => {
    let harness: ResolverHarness;
    beforeAll(async () => {
      harness = await start();
    });
    afterAll(() => harness?.stop());

    it('gives every TXT record of a name, long ones in one piece', async () => {
      const long = 'x'.repeat(300);
      harness.publish('_paas.www.example.com', ['paas-domain=1', long]);
      expect([...(await harness.resolver.readTexts('_paas.www.example.com'))].toSorted()).toEqual(['paas-domain=1', long]);
    });

    it('has nothing for a name that has none, or that is no name', async () => {
      for (const unknown of ['nobody.example.com', '', 'a..b', 'with space.example.com'])
        expect(await harness.resolver.readTexts(unknown)).toEqual([]);
    });
  });
}
