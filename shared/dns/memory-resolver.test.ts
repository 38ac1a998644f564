import { describeResolver } from '#shared/dns/contract/resolver.ts';
import { createMemoryResolver } from '#shared/dns/memory-resolver.ts';

describeResolver('memory', async () => {
  const resolver = createMemoryResolver();
  return { resolver, publish: (name, texts) => void resolver.texts.set(name, texts), stop: async () => undefined };
});
