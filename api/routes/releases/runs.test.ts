import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { AppId } from '#shared/ids.ts';
import { joinTenant, seedRelease } from '#test/support/api/seeds.ts';
import { createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

let test: TestApi;
let ada: TestUser;
let app: { id: AppId; name: string };
beforeAll(async () => {
  test = await createTestApi();
  ada = await test.signUp();
});
afterAll(() => test?.close());
beforeEach(async () => {
  app = await test.createApp(ada);
});

const run = (json: unknown, headers: Record<string, string> = {}) =>
  test.ask('POST', `/v1/apps/${app.name}/runs`, { as: ada, json, headers });

describe('a one-off command', () => {
  it('is a stream of events: which run it is, and how it ended', async () => {
    await seedRelease(test, ada, app.id);
    const response = await test.request(`/v1/apps/${app.name}/runs`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ada.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ command: 'true' }),
    });
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
    const text = await response.text();
    expect(text).toMatch(
      /event: run\ndata: \{"id":"[0-9a-f-]{36}","release_version":1\}\n\nevent: exit\ndata: \{"exit_code":0\}\n/,
    );
  });

  it.each([
    [{}, 422, 'command'],
    [{ command: '' }, 422, 'command'],
    [{ command: 'a\0b' }, 422, 'command'],
    [{ command: [] }, 422, 'command'],
    [{ command: 'x'.repeat(8193) }, 422, 'command'],
    [{ command: 'true', terminal: { columns: 0, rows: 1 } }, 422, 'terminal.columns'],
    [{ command: 'true', terminal: { columns: 80, rows: 24, name: "x'; rm" } }, 422, 'terminal.name'],
  ])('refuses %j with %i', async (json, expected, path) => {
    await seedRelease(test, ada, app.id);
    const { status, body } = await run(json);
    expect([status, body.error.details[0]?.path]).toEqual([expected, path]);
  });

  it('does not support Idempotency-Key, whose answers are stored', async () => {
    await seedRelease(test, ada, app.id);
    const { status, body } = await run({ command: 'true' }, { 'idempotency-key': crypto.randomUUID() });
    expect([status, body.error.message]).toEqual([422, 'A command that is run does not support Idempotency-Key.']);
  });

  it('needs a release', async () => {
    expect((await run({ command: 'true' })).status).toBe(409);
  });

  it('is for developers, whose environment it shows', async () => {
    await seedRelease(test, ada, app.id);
    const viewer = await joinTenant(test, ada, 'viewer');
    const { status } = await test.ask('POST', `/v1/apps/${app.id}/runs`, {
      as: viewer,
      json: { command: 'env' },
      headers: { 'x-paas-tenant': ada.tenantId },
    });
    expect(status).toBe(403);
  });
});

describe('input of a command', () => {
  it.each(['x', 'a b', '='])('must be base64, not %j', async (base64) => {
    await seedRelease(test, ada, app.id);
    const path = `/v1/apps/${app.name}/runs/${crypto.randomUUID()}/input`;
    expect((await test.ask('POST', path, { as: ada, json: { base64 } })).status).toBe(422);
  });

  it('is refused for a run that there is not', async () => {
    for (const id of [crypto.randomUUID(), 'x']) {
      const path = `/v1/apps/${app.name}/runs/${id}/input`;
      const { status, body } = await test.ask('POST', path, { as: ada, json: { end: true } });
      expect([status, body.error.message]).toEqual([404, 'No such run.']);
    }
  });
});
