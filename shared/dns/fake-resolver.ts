import type { Resolver } from '#shared/dns/resolver.ts';

export interface FakeResolver extends Resolver {
  /** By lower-case name. */
  readonly texts: Map<string, readonly string[]>;
}

/** A resolver that knows what it is told. */
export function createFakeResolver(): FakeResolver {
  const texts = new Map<string, readonly string[]>();
  return { texts, readTexts: async (name) => texts.get(name.toLowerCase()) ?? [] };
}
