import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { askRelease, type ReleaseQuestion } from './ask-release.ts';

/** Answers these statuses in order; nothing to a question that is undefined. */
async function ask(
  whom: 'candidate' | 'stable',
  statuses: readonly (number | undefined)[],
  change: Partial<ReleaseQuestion> = {},
) {
  const asked: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    const status = statuses[asked.length];
    asked.push(request.url);
    if (status !== undefined) response.writeHead(status).end('body');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    return { asked, ...(await askRelease({ whom, origin, healthPath: undefined, timeoutSeconds: 20, ...change })) };
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

it.each([
  ['candidate', [500, 200, 200], [500, 200]],
  ['candidate', [503, 503, 503, 200], [503, 503, 503]],
  ['stable', [200, 302, 500], [200, 302, 500]],
  ['stable', [500, 200], [500]],
] as const)('asks the %s no more than it has to: of %j it needs %j', async (whom, statuses, answers) => {
  expect(await ask(whom, statuses)).toMatchObject({ path: '/', isOwnPath: false, answers });
});

it('asks for the path of the app, and nothing again that gave no answer', async () => {
  expect(await ask('candidate', [undefined, 200], { healthPath: '/healthz', timeoutSeconds: 0.2 })).toMatchObject({
    path: '/healthz',
    isOwnPath: true,
    answers: ['gave no answer within 0.2 s'],
  });
});
