/**
 * The API answers in each runtime as it does in this one: every operation of the OpenAPI document, with and without a token, byte for
 * byte. `npm run test:runtimes` runs all tests of the API in each runtime.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundleWorker } from '#deploy/edge/bundle-worker.ts';
import { addressOf, bodyOf, guardedOperations, type Operation, operations } from '#test/support/api/operations.ts';
import { apiRuntimes, isRuntimeAvailable } from '#test/support/api/runtime-commands.ts';
import { type PathValues, seedWorld } from '#test/support/api/seed-world.ts';
import { createTestApi, type TestApi, type TestUser, testPassword } from '#test/support/api/test-api.ts';

/** Of the connection, of the moment, or counted by each of the two. */
const ofTheRequest = new Set(['x-request-id', 'date', 'ratelimit', 'content-length']);
/** They answer with what changes between two requests, or with a stream. */
const volatile = ['listQuotas'];
const reads = guardedOperations.filter(({ method, operationId }) => method === 'GET' && !volatile.includes(operationId));

type Send = (path: string, init: RequestInit) => Promise<Response>;

/** What must be the same in each runtime. */
async function essenceOf(response: Response, names: readonly string[]): Promise<unknown> {
  const body = (await response.text()).replace(/"request_id":"[^"]+","ts":"[^"]+"/, '');
  return { status: response.status, headers: names.map((name) => [name, response.headers.get(name)]), body };
}

/** Without a package registry, those that are not here are skipped. */
const available = apiRuntimes.map((runtime) => [runtime, isRuntimeAvailable(runtime)] as const);

describe.each(available)('on %s (available: %s)', (runtime, isAvailable) => {
  let test: TestApi;
  let ada: TestUser;
  let world: PathValues;
  let addresses = 0;
  beforeAll(async () => {
    if (!isAvailable) return;
    if (runtime === 'workerd') await bundleWorker();
    test = await createTestApi({}, runtime);
    ada = await test.signUp();
    world = await seedWorld(test, ada);
  }, 180_000);
  afterAll(() => test?.close());

  async function expectSame(operation: Operation, values: PathValues, as?: TestUser): Promise<void> {
    const json = bodyOf(operation, values);
    const path = addressOf(operation, values);
    const ask = (send: Send): Promise<Response> => {
      const headers = new Headers({ 'x-test-address': `2001:db8:1:${((addresses += 1)).toString(16)}::1` });
      if (as !== undefined) headers.set('authorization', `Bearer ${as.token}`);
      if (json !== undefined) headers.set('content-type', 'application/json');
      return send(path, { method: operation.method, headers, ...(json === undefined ? {} : { body: JSON.stringify(json) }) });
    };
    const here = await ask(async (url, init) => test.api.request(url, init));
    const names = [...here.headers.keys()].filter((name) => !ofTheRequest.has(name));
    const [expected, answered] = [await essenceOf(here, names), await essenceOf(await ask(test.request), names)];
    expect([operation.operationId, answered]).toEqual([operation.operationId, expected]);
  }

  it.runIf(isAvailable)('a stranger gets the same refusal from every operation', async () => {
    for (const operation of guardedOperations) await expectSame(operation, world);
  });

  it.runIf(isAvailable)('an owner gets the same answer from every operation that reads', async () => {
    for (const operation of reads) await expectSame(operation, world, ada);
  });

  it.runIf(isAvailable)('somebody else gets the same refusal from every operation on an app', async () => {
    const eve = await test.signUp();
    for (const operation of guardedOperations.filter(({ path }) => path.startsWith('/v1/apps/{id}')))
      await expectSame(operation, world, eve);
  });

  it.runIf(isAvailable)('what needs no token gets the same answer, and unknown routes and methods do', async () => {
    const open = operations.filter(({ method, security }) => method === 'GET' && security.length === 0);
    expect(open.length).toBeGreaterThan(4);
    for (const operation of open) await expectSame(operation, world);
    for (const [method, path] of [
      ['GET', '/v1/nothing'],
      ['DELETE', '/v1/apps'],
      ['OPTIONS', '/v1/apps'],
      ['GET', '//v1//apps/'],
    ])
      await expectSame(
        { operationId: `${method} ${path}`, method, path, security: [], responses: {} } as unknown as Operation,
        world,
      );
  });

  it.runIf(isAvailable)('a token of a sign-up there is good here', async () => {
    const email = `${crypto.randomUUID()}@example.com`;
    const signed = await test.ask('POST', '/v1/signup', { json: { email, password: testPassword } });
    expect(signed.status).toBe(201);
    const here = await test.api.request('/v1/user', { headers: { authorization: `Bearer ${signed.body.data.access_token}` } });
    expect(here.status).toBe(200);
    expect((await test.ask('POST', '/v1/auth/login', { json: { email, password: testPassword } })).status).toBe(200);
    expect((await test.ask('POST', '/v1/auth/login', { json: { email, password: 'wrong horse' } })).status).toBe(401);
  });

  it.runIf(isAvailable)('an address without failures left cannot try passwords', async () => {
    const address = '203.0.113.78';
    for (let call = 1; call <= 31; call += 1)
      await test.ask('GET', '/v1/user', { address, headers: { authorization: 'Bearer wrong' } });
    const json = { email: ada.email, password: testPassword };
    expect((await test.ask('POST', '/v1/auth/login', { address, json })).status).toBe(429);
    expect((await test.ask('POST', '/v1/auth/login', { address: '203.0.113.79', json })).status).toBe(200);
  });

  it.runIf(isAvailable)('an address has 30 calls a minute without a token, whatever other address a header claims', async () => {
    const statuses: number[] = [];
    for (let call = 1; call <= 31; call += 1) {
      const headers = {
        'x-test-address': '203.0.113.77',
        'cf-connecting-ip': `203.0.113.${call}`,
        'content-type': 'application/json',
      };
      const body = JSON.stringify({ refresh_token: 'unknown' });
      const response = await test.request('/v1/auth/logout', { method: 'POST', headers, body });
      await response.body?.cancel();
      statuses.push(response.status);
    }
    expect(statuses.indexOf(429)).toBe(30);
  });
});
