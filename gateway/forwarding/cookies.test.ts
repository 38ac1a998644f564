import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestGateway, type TestGateway } from '../testing/start-test-gateway.ts';
import { confineCookie } from './cookies.ts';

const platformDomains = ['apps.example.com', 'paas.example.com'];

describe('a cookie of an app', () => {
  it.each([
    ['id=1; Domain=apps.example.com; Path=/', 'id=1; Path=/'],
    ['id=1; Domain=.apps.example.com', 'id=1'],
    ['id=1;DOMAIN = Example.COM ;Secure', 'id=1;Secure'],
    ['id=1; domain="example.com."', 'id=1'],
    ['id=1; Domain=com; Domain=paas.example.com; HttpOnly', 'id=1; HttpOnly'],
  ])('is not set for other apps or the API: %s', (value, confined) => {
    expect(confineCookie(value, platformDomains)).toBe(confined);
  });

  it.each([
    'id=1; Path=/; Secure',
    'id=1; Domain=shop.apps.example.com',
    'id=1; Domain=customer.example',
    'id=1; Domain=notapps.example.com',
    'id=domain=example.com; Path=/',
  ])('is kept when it concerns that app alone: %s', (value) => {
    expect(confineCookie(value, platformDomains)).toBe(value);
  });
});

describe('the gateway', () => {
  let test: TestGateway;
  beforeAll(async () => {
    test = await startTestGateway();
  });
  afterAll(() => test?.stop());

  it.each(['GET', 'POST'])('confines the cookies of a response to %s', async (method) => {
    const app = await test.startApp((_, response) =>
      response
        .writeHead(200, { 'Set-Cookie': ['a=1; Domain=apps.localhost; Path=/', 'b=2; Domain=localhost', 'c=3; Path=/'] })
        .end(),
    );
    const { headers } = await test.fetch(app.host, method === 'GET' ? {} : { method, body: 'x' });
    expect(headers['set-cookie']).toEqual(['a=1; Path=/', 'b=2', 'c=3; Path=/']);
  });

  it('confines the cookies of a response to an upgrade', async () => {
    const app = await test.startApp((_, response) => void response.end());
    app.servers[0]?.on('upgrade', (_, socket) =>
      socket.end(
        'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSet-Cookie: a=1; Domain=apps.localhost\r\n\r\n',
      ),
    );
    const received = await test.exchange(
      `GET / HTTP/1.1\r\nHost: ${app.host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    );
    expect(received).toMatch(/^HTTP\/1.1 101 [^]*^Set-Cookie: a=1\r$/m);
  });
});
