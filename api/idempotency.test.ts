import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, createTestApi, type TestApi, type TestUser } from '#test/support/api.ts';

let test: TestApi;
let ada: TestUser;
beforeAll(async () => {
  test = await createTestApi();
  ada = await test.signUp();
});
afterAll(() => test?.close());

const create = (key: string, json: unknown = {}, as: TestUser = ada): Promise<Answer> =>
  test.ask('POST', '/v1/apps', { as, json, headers: { 'idempotency-key': key } });

async function countApps(as: TestUser): Promise<number> {
  return (await test.ask('GET', '/v1/apps?limit=200', { as })).body.data.length;
}

describe('a POST with an Idempotency-Key', () => {
  it('is done once, and its first answer given again, also under the other prefix', async () => {
    const first = await create('once');
    const again = await create('once');
    expect(first.status).toBe(201);
    expect([again.status, again.body]).toEqual([201, first.body]);
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    const prefixed = await test.ask('POST', '/api/v1/apps', { as: ada, json: {}, headers: { 'idempotency-key': 'once' } });
    expect(prefixed.body).toEqual(first.body);
  });

  it('is done once however many come at once', async () => {
    const user = await test.signUp();
    const answers = await Promise.all(Array.from({ length: 10 }, () => create('at-once', {}, user)));
    expect(answers.filter((answer) => answer.status === 201 || answer.status === 409)).toHaveLength(10);
    expect(await countApps(user)).toBe(1);
    expect((await create('at-once', {}, user)).status).toBe(201);
    expect(await countApps(user)).toBe(1);
  });

  it('conflicts with another body of the same key', async () => {
    await create('body', { branch: 'main' });
    const other = await create('body', { branch: 'trunk' });
    expect([other.status, other.body.error.code]).toEqual([409, 'conflict']);
  });

  it('conflicts with another path of the same key', async () => {
    const app = await test.createApp(ada);
    await create('path');
    const other = await test.ask('POST', `/v1/apps/${app.id}/builds`, {
      as: ada,
      json: {},
      headers: { 'idempotency-key': 'path' },
    });
    expect(other.status).toBe(409);
  });

  it('does not meet the same key of somebody else', async () => {
    const bob = await test.signUp();
    const [mine, theirs] = [await create('shared'), await create('shared', {}, bob)];
    expect(theirs.body.data.tenant_id).toBe(bob.tenantId);
    expect(theirs.body.data.id).not.toBe(mine.body.data.id);
  });

  it('that was refused can be mended and sent again', async () => {
    expect((await create('mend', { name: 'Not A Name' })).status).toBe(422);
    expect((await create('mend', { branch: 7 })).status).toBe(422);
    expect((await create('mend')).status).toBe(201);
  });

  it.each(['', 'two words', 'x'.repeat(256)])('refuses %j as a key', async (key) => {
    expect((await create(key)).status).toBe(422);
  });

  it('keeps nothing of public routes, which have nobody to keep it for', async () => {
    const body = { json: { refresh_token: 'unknown' }, headers: { 'idempotency-key': 'public' } };
    expect((await test.ask('POST', '/v1/auth/refresh', body)).status).toBe(401);
    expect((await test.ask('POST', '/v1/auth/logout', body)).status).toBe(204);
  });
});
