import { describe, expect, it } from 'vitest';
import { trustProxies } from './client.ts';
import { type InboundRequest, planRequest, responseHeaders } from './request-plan.ts';

const inbound: InboundRequest = {
  method: 'GET',
  target: '/path?query',
  httpVersion: '1.1',
  rawHeaders: ['Host', 'app.example.com:8080'],
  connection: { address: '192.0.2.7', port: 8080, encrypted: false },
  requestId: 'req_1',
};

const isTrusted = trustProxies(['10.0.0.0/8']);

function plan(change: Partial<InboundRequest>) {
  const result = planRequest({ ...inbound, ...change }, isTrusted);
  if (!('path' in result)) throw new Error(result.message);
  const values = (name: string) =>
    result.headers.filter((_, index) => index % 2 === 1 && result.headers[index - 1]?.toLowerCase() === name);
  return { ...result, values };
}

const withHeaders = (...headers: string[]): string[] => ['Host', 'app.example.com', ...headers];

describe('the plan of a request', () => {
  it("keeps the Host header, and adds the client's address, protocol and port", () => {
    const { host, path, values } = plan({ connection: { ...inbound.connection, encrypted: true } });
    expect({ host, path }).toEqual({ host: 'app.example.com', path: '/path?query' });
    expect(values('host')).toEqual(['app.example.com:8080']);
    expect(values('x-forwarded-for')).toEqual(['192.0.2.7']);
    expect(values('x-forwarded-proto')).toEqual(['https']);
    expect(values('x-forwarded-host')).toEqual(['app.example.com:8080']);
    expect(values('x-forwarded-port')).toEqual(['8080']);
    expect(values('x-request-id')).toEqual(['req_1']);
  });

  it.each(['X-Forwarded-For', 'x-forwarded-proto', 'X_Forwarded_For', 'Forwarded', 'X-Real-IP', 'X-Request-Id'])(
    'replaces the %s of a client',
    (name) => {
      const { headers } = plan({ rawHeaders: withHeaders(name, 'forged') });
      expect(headers).not.toContain('forged');
    },
  );

  it('believes a trusted proxy who its client is', () => {
    const headers = ['X-Forwarded-For', '198.51.100.1', 'X-Forwarded-For', '203.0.113.7', 'X-Forwarded-Proto', 'https'];
    const connection = { ...inbound.connection, address: '10.0.0.1' };
    const { values } = plan({ connection, rawHeaders: withHeaders(...headers) });
    expect(values('x-forwarded-for')).toEqual(['203.0.113.7']);
    expect(values('x-forwarded-proto')).toEqual(['https']);
    expect(values('x-forwarded-port')).toEqual(['443']);
  });

  it('drops headers about the connection, and headers that the Connection header names', () => {
    const rawHeaders = withHeaders(
      'Connection',
      'keep-alive, X-Hop',
      'X-Hop',
      'a',
      'Keep-Alive',
      'b',
      'Proxy-Authorization',
      'c',
      'Upgrade',
      'h2c',
      'X-Kept',
      'd',
    );
    expect(plan({ rawHeaders }).headers).toEqual(expect.not.arrayContaining(['a', 'b', 'c', 'h2c']));
    expect(plan({ rawHeaders }).values('x-kept')).toEqual(['d']);
  });

  it('does not drop the headers that the gateway adds', () => {
    const { values } = plan({ rawHeaders: withHeaders('Connection', 'host, x-forwarded-for') });
    expect(values('host')).toEqual(['app.example.com']);
    expect(values('x-forwarded-for')).toEqual(['192.0.2.7']);
  });

  it('keeps repeated headers in order', () => {
    expect(plan({ rawHeaders: withHeaders('Cookie', 'a=1', 'Cookie', 'b=2') }).values('cookie')).toEqual(['a=1', 'b=2']);
  });

  it('allows a request to be sent again only when it is idempotent and has no body', () => {
    expect(plan({}).replayable).toBe(true);
    expect(plan({ method: 'DELETE' }).replayable).toBe(true);
    expect(plan({ method: 'POST' }).replayable).toBe(false);
    expect(plan({ method: 'PUT', rawHeaders: withHeaders('Content-Length', '3') }).replayable).toBe(false);
    expect(plan({ rawHeaders: withHeaders('Transfer-Encoding', 'chunked') }).replayable).toBe(false);
  });

  it.each([
    ['both lengths', withHeaders('Content-Length', '3', 'Transfer-Encoding', 'chunked'), 400],
    ['two lengths', withHeaders('Content-Length', '3', 'Content-Length', '3'), 400],
    ['a list of lengths', withHeaders('Content-Length', '3, 3'), 400],
    ['a signed length', withHeaders('Content-Length', '+3'), 400],
    ['another coding before chunked', withHeaders('Transfer-Encoding', 'gzip, chunked'), 501],
    ['chunked twice', withHeaders('Transfer-Encoding', 'chunked', 'Transfer-Encoding', 'chunked'), 501],
    ['a disguised chunked', withHeaders('Transfer-Encoding', 'xchunked'), 501],
    ['no host', [], 400],
    ['two hosts', withHeaders('Host', 'other.example.com'), 400],
    ['a host with user info', ['Host', 'a@b.example.com'], 400],
    ['a host with a path', ['Host', 'a.example.com/x'], 400],
    ['a list of hosts', ['Host', 'a.example.com, b.example.com'], 400],
  ])('refuses %s', (_, rawHeaders, status) => {
    expect(planRequest({ ...inbound, rawHeaders }, isTrusted)).toMatchObject({ status });
  });

  it('refuses chunks in HTTP/1.0, TRACE and CONNECT', () => {
    expect(
      planRequest({ ...inbound, httpVersion: '1.0', rawHeaders: withHeaders('Transfer-Encoding', 'chunked') }, isTrusted),
    ).toMatchObject({ status: 400 });
    expect(planRequest({ ...inbound, method: 'TRACE' }, isTrusted)).toMatchObject({ status: 405 });
    expect(planRequest({ ...inbound, method: 'CONNECT' }, isTrusted)).toMatchObject({ status: 405 });
  });

  it.each([
    ['App.Example.COM', 'app.example.com'],
    ['app.example.com.', 'app.example.com'],
    ['app.example.com.:443', 'app.example.com'],
    ['[::1]:8080', '[::1]'],
    ['127.0.0.1', '127.0.0.1'],
  ])('reads the host of %s as %s', (header, host) => {
    expect(plan({ rawHeaders: ['Host', header] }).host).toBe(host);
  });

  it('accepts a URL as target only when it has the host of the Host header', () => {
    expect(plan({ target: 'http://app.example.com:8080/x?y' }).path).toBe('/x?y');
    expect(plan({ target: 'http://app.example.com:8080' }).path).toBe('/');
    expect(plan({ method: 'OPTIONS', target: '*' }).path).toBe('*');
    for (const target of [
      'http://other.example.com/',
      'http://app.example.com:8080@other/',
      'other',
      'ftp://app.example.com:8080/',
    ]) {
      expect(planRequest({ ...inbound, target }, isTrusted)).toMatchObject({ status: 400 });
    }
  });
});

describe('the headers of a response', () => {
  it("are forwarded except those about the upstream's connection", () => {
    const raw = [
      'Set-Cookie',
      'a',
      'Set-Cookie',
      'b',
      'Connection',
      'close, X-Hop',
      'X-Hop',
      'c',
      'Transfer-Encoding',
      'chunked',
      'Keep-Alive',
      'timeout=5',
      'ETag',
      'd',
    ];
    expect(responseHeaders(raw, [])).toEqual(['Set-Cookie', 'a', 'Set-Cookie', 'b', 'ETag', 'd']);
  });
});
