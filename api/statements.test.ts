import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createApi } from '#api/create-api.ts';
import { createServices } from '#deploy/control-plane.ts';
import type { Db } from '#shared/database/db.ts';
import { createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

let test: TestApi;
let ada: TestUser;
let app: { id: string; name: string };
beforeAll(async () => {
  test = await createTestApi();
  ada = await test.signUp();
  app = await test.createApp(ada);
});
afterAll(() => test?.close());

/** The status of a GET, and how many SQL statements core ran for it. */
async function countStatements(path: string, headers: Record<string, string> = {}): Promise<[status: number, count: number]> {
  let count = 0;
  const db: Db = test.context.db.withPlugin({
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      count += 1;
      return result;
    },
  });
  const api = createApi({ ...test.apiOptions, services: createServices({ ...test.context, db }) });
  const { status } = await api.request(path, { headers: { authorization: `Bearer ${ada.token}`, ...headers } });
  return [status, count];
}

describe('a GET about an app', () => {
  it('reads the membership and the app in one statement', async () => {
    expect(await countStatements(`/v1/apps/${app.id}`)).toEqual([200, 1]);
    expect(await countStatements(`/v1/apps/${app.name}`)).toEqual([200, 1]);
    expect(await countStatements(`/v1/apps/${app.id}`, { 'x-paas-tenant': ada.tenantId })).toEqual([200, 1]);
    expect(await countStatements('/v1/apps/no-such-app')).toEqual([404, 1]);
  });

  it('adds one statement for what it asks of the app', async () => {
    expect(await countStatements(`/v1/apps/${app.id}/builds`)).toEqual([200, 2]);
    expect(await countStatements(`/v1/apps/${app.id}/domains`)).toEqual([200, 2]);
  });
});

it('a list of apps is read in two statements, membership first', async () => {
  expect(await countStatements('/v1/apps')).toEqual([200, 2]);
});
