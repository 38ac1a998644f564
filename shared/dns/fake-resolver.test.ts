import { describeResolver } from '#shared/dns/contract/resolver.ts';
import { createFakeResolver } from '#shared/dns/fake-resolver.ts';

describeResolver('memory', async () => {
  const resolver = createFakeResolver();
  return { resolver, publish: (name, texts) => void resolver.texts.set(name, texts), stop: async () => undefined };
});
