import type { Resolver } from '#shared/dns/resolver.ts';

/** A resolver with records set by a test. */
export interface FakeResolver extends Resolver {
  /** TXT records by lower-case name. */
  readonly texts: Map<string, readonly string[]>;
}

/** An in-memory resolver for tests, without records. */
export function createFakeResolver(): FakeResolver {
  const texts = new Map<string, readonly string[]>();
  return { texts, readTexts: async (name) => texts.get(name.toLowerCase()) ?? [] };
}
