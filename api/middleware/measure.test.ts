import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestApi, type TestApi } from '#test/support/api/test-api.ts';

let test: TestApi;
beforeAll(async () => {
  test = await createTestApi();
});
afterAll(() => test.close());

it('requests are counted by route template: no path, name or token becomes a label', async () => {
  const user = await test.signUp();
  const app = await test.createApp(user);
  await test.ask('GET', `/v1/apps/${app.name}`, { as: user });
  await test.ask('GET', `/api/v1/apps/${app.id}`, { as: user });
  await test.ask('GET', '/v1/apps/not-mine', { as: user });
  await test.ask('GET', '/v1/nowhere/at/all');
  await test.ask('BREW', '/v1/apps/coffee', { as: user });
  const text = await test.metrics.render();
  expect(text).toContain('_count{method="GET",route="/v1/apps/:id",status="200"} 2');
  expect(text).toContain('_count{method="GET",route="/v1/apps/:id",status="404"} 1');
  expect(text).toContain('_count{method="GET",route="none",status="404"} 1');
  expect(text).toContain('_count{method="other",route="none",status="405"} 1');
  for (const secret of [app.name, app.id, user.token, user.email, 'not-mine', 'nowhere', 'BREW', 'coffee'])
    expect(text).not.toContain(secret);
});
