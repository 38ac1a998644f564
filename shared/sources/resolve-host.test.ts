import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { guardedRequest } from '#shared/sources/guarded-request.ts';
import { isPublicAddress } from '#shared/sources/public-address.ts';
import { resolveHost } from '#shared/sources/resolve-host.ts';

const nowhere = () => Promise.reject(new Error('no name was to be looked up'));

describe('an address of a private network is refused', () => {
  it.each([
    'http://127.0.0.1/',
    'http://2130706433/',
    'http://0x7f000001/',
    'http://0177.0.0.1/',
    'http://127.1/',
    'http://0/',
    'http://10.1.2.3/',
    'http://172.31.255.255/',
    'http://192.168.0.1/',
    'http://100.64.0.1/',
    'http://169.254.169.254/latest/meta-data/',
    'http://224.0.0.1/',
    'http://255.255.255.255/',
    'http://[::1]/',
    'http://[::]/',
    'http://[::ffff:127.0.0.1]/',
    'http://[::ffff:a9fe:a9fe]/',
    'http://[::7f00:1]/',
    'http://[64:ff9b::7f00:1]/',
    'http://[2002:7f00:1::]/',
    'http://[2001:0:7f00:1::]/',
    'http://[fe80::1]/',
    'http://[fd00:ec2::254]/',
    'http://[ff02::1]/',
  ])('%s', async (url) => {
    await expect(resolveHost(new URL(url).hostname, nowhere, false)).rejects.toThrow('private network');
  });

  it('by a name that leads there, be it one address among others', async () => {
    const lookUp = async () => [
      { address: '93.184.216.34', family: 4 as const },
      { address: '::1', family: 6 as const },
    ];
    await expect(resolveHost('rebind.example.com', lookUp, false)).rejects.toThrow('private network');
  });
});

it.each(['93.184.216.34', '2606:2800:220:1:248:1893:25c8:1946', '140.82.112.3'])('%s is one of the open internet', (address) => {
  expect(isPublicAddress(address)).toBe(true);
});

describe('a request', () => {
  const signal = AbortSignal.timeout(10_000);

  it('goes to the address that was checked, whatever the name says later', async () => {
    const { server, port } = await serve('http://127.0.0.1/');
    let asked = 0;
    const lookUp = async () => [{ address: (asked += 1) === 1 ? '127.0.0.1' : '127.0.0.2', family: 4 as const }];
    const request = guardedRequest(
      new URL(`http://git.example.com:${port}/ok`),
      { method: 'GET', headers: {}, signal },
      { lookUp, allowPrivate: true },
    );
    expect((await request).url.hostname).toBe('git.example.com');
    expect(asked).toBe(1);
    server.close();
  });

  it('that is led elsewhere is checked there again', async () => {
    const { server, port } = await serve('http://metadata.example.com/');
    const lookUp = async (host: string) => {
      if (host === 'metadata.example.com') throw new Error('it came here');
      return [{ address: '127.0.0.1', family: 4 as const }];
    };
    const asked = { method: 'GET' as const, headers: {}, redirects: 3, signal };
    const options = { lookUp, allowPrivate: true };
    await expect(guardedRequest(new URL(`http://git.example.com:${port}/away`), asked, options)).rejects.toThrow(
      'The host metadata.example.com could not be resolved',
    );
    await expect(guardedRequest(new URL(`http://git.example.com:${port}/round`), asked, options)).rejects.toThrow(
      'redirects too often',
    );
    server.close();
  });

  it('is never made in plain HTTP, by redirect or from the start, where private networks are closed', async () => {
    const asked = { method: 'GET' as const, headers: {}, signal };
    await expect(
      guardedRequest(new URL('http://git.example.com/'), asked, { lookUp: nowhere, allowPrivate: false }),
    ).rejects.toThrow('use https');
  });
});

async function serve(away: string) {
  const server = createServer((request, response) => {
    if (request.url === '/ok') return response.end('ok');
    response.writeHead(302, { location: request.url === '/away' ? away : '/round' }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, port: (server.address() as AddressInfo).port };
}
