import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestGateway, type TestGateway } from '../testing/start-test-gateway.ts';

let test: TestGateway;
beforeAll(async () => {
  test = await startTestGateway();
});
afterAll(() => test?.stop());

describe('what is noted of a release', () => {
  it('is whether GET / was answered below 500, and neither other pages nor errors count', async () => {
    let status = 500;
    const app = await test.startApp((_, response) => void response.writeHead(status).end());
    const answersRoot = async () => (await test.router.readTraffic(app.route.appId))[0]?.answersRoot;
    await test.fetch(app.host);
    status = 200;
    await test.fetch(app.host, { path: '/other' });
    await test.fetch(app.host, { method: 'POST', body: 'x' });
    await expect.poll(async () => (await test.router.readTraffic(app.route.appId))[0]?.requests).toBe(3);
    expect(await answersRoot()).toBeUndefined();
    await test.fetch(app.host, { path: '/?from=mail' });
    await expect.poll(answersRoot).toBe(true);
  });
});
