import { expect, it } from 'vitest';
import { describeResolver } from '#shared/dns/contract/resolver.ts';
import { createNodeResolver } from '#shared/dns/node-resolver.ts';
import { startNameServer } from '#shared/dns/testing/name-server.ts';

describeResolver('node', async () => {
  const server = await startNameServer();
  return {
    resolver: createNodeResolver([server.address]),
    publish: (name, texts) => void server.texts.set(name, texts),
    stop: () => server.close(),
  };
});

it('a name server that is not there is nothing found, and no error', async () => {
  const server = await startNameServer();
  await server.close();
  expect(await createNodeResolver([server.address]).readTexts('www.example.com')).toEqual([]);
});
