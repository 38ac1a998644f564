import { readFile } from 'node:fs/promises';
import { request } from 'node:http';
import { request as secureRequest } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createPerson, type Person } from '#cli/testing/person.ts';
import { nodeApp } from '#test/support/builds/sample-apps.ts';
import { type RunningPlatform, removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { createUser, type User, visit } from '#test/support/platform/user.ts';

interface Series {
  name: string;
  unit: string;
  labels: Record<string, string>;
  points: [string, number][];
}

/** Answers /fail with a 500, and /spin at once while it works for 4 s of processor time. */
const busyServer = `const { createServer } = require('node:http');
const server = createServer((request, response) => {
  if (request.url === '/fail') response.statusCode = 500;
  response.end('ok');
  if (request.url !== '/spin') return;
  const before = process.cpuUsage().user;
  const timer = setInterval(() => {
    for (const pause = Date.now() + 90; Date.now() < pause; );
    if (process.cpuUsage().user - before > 4e6) clearInterval(timer);
  }, 100);
});
server.listen(process.env.PORT);
`;

describe('metrics and domains', () => {
  let platform: RunningPlatform;
  let user: User;
  let person: Person;
  beforeAll(async () => {
    platform = await startPlatform();
    user = await createUser(platform);
    person = await createPerson({ PAAS_API_URL: platform.baseUrl, PAAS_TOKEN: user.token, PAAS_APP: 'busy' });
    const app = await user.createApp('busy');
    const copy = await user.createWorkingCopy(app.push_url, { ...nodeApp('busy'), 'server.js': busyServer });
    expect((await copy.push()).code).toBe(0);
  });
  afterAll(async () => {
    await person.remove();
    await user.remove();
    await removePlatform(platform);
  });

  const scrape = async (): Promise<string> => (await fetch(`http://127.0.0.1:${platform.metricsPort}/metrics`)).text();
  async function countStarts(): Promise<Record<string, number>> {
    const samples = (await scrape()).matchAll(/^paas_build_start_total\{cache_state="(cold|warm)",pipeline="local"\} (\d+)$/gm);
    return Object.fromEntries([...samples].map(([, state = '', count]): [string, number] => [state, Number(count)]));
  }
  async function readValues(kind: string): Promise<number[]> {
    const series = await user.api<Series[]>('GET', `/v1/apps/busy/metrics?kind=${kind}&range=15m`);
    return series.filter(({ labels }) => labels['process'] === 'web').flatMap(({ points }) => points.map(([, value]) => value));
  }
  const total = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

  it('show the load that really was: every request, every failure, how long it took, and a processor at work', async () => {
    await visit(platform, 'busy', '/spin');
    for (let round = 0; round < 10; round += 1) {
      await Promise.all([...Array.from({ length: 19 }, () => visit(platform, 'busy')), visit(platform, 'busy', '/fail')]);
    }
    await expect.poll(async () => total(await readValues('requests')), { timeout: 40_000, interval: 1000 }).toBe(201);
    expect(total(await readValues('errors'))).toBe(10);
    expect((await person.paas(['metrics', 'requests'])).stdout).toMatch(/^web {2}requests {2}[▁-█ ]+ {2}201 in total\n$/);
    expect(Math.max(...(await readValues('latency')))).toBeGreaterThan(0);
    const latency = (await person.paas(['metrics', 'latency'])).stdout;
    for (const statistic of ['p50', 'p95', 'p99', 'mean'])
      expect(latency).toMatch(new RegExp(`^web {2}latency ${statistic} .* ms`, 'm'));
    expect(Math.max(...(await readValues('memory')))).toBeGreaterThan(10 * 1024 * 1024);
    // Cores over steps of 10 s. On a machine with much else to do it takes longer, and is no less.
    const processorSeconds = async (): Promise<number> => 10 * total(await readValues('cpu'));
    await expect.poll(processorSeconds, { timeout: 60_000, interval: 1000 }).toBeGreaterThan(3);
  });

  it('lead a domain of one’s own to the app, by HTTP and by HTTPS with a certificate that is good for that domain alone', async () => {
    const host = 'shop.example.test';
    /** @param ca a certificate that the client trusts; undefined: it asks by HTTP */
    const ask = (ca?: string) =>
      new Promise<number>((resolve, reject) => {
        const options = { host: '127.0.0.1', headers: { host }, agent: false as const };
        const asked =
          ca !== undefined
            ? secureRequest({ ...options, port: platform.httpsPort, servername: host, ca })
            : request({ ...options, port: platform.httpPort });
        asked.once('response', (answer) => resolve(answer.resume().statusCode ?? 0));
        asked.once('error', reject);
        asked.end();
      });
    expect(await ask()).toBe(404);
    expect((await person.paas(['domains:add', 'Shop.Example.TEST'])).code).toBe(0);
    await expect.poll(() => ask(), { timeout: 20_000 }).toBe(200);
    const gateway = join(platform.dataDir, 'gateway');
    const [certificate = ''] =
      /-----BEGIN CERTIFICATE[^]*/.exec(await readFile(join(gateway, 'certificates', `${host}.pem`), 'utf8')) ?? [];
    expect(await ask(certificate)).toBe(200);
    await expect(ask(await readFile(join(gateway, 'ca.pem'), 'utf8'))).rejects.toThrow('self-signed certificate');
    const [domain] = await user.api<unknown[]>('GET', '/v1/apps/busy/domains');
    expect(domain).toMatchObject({ host, status: 'active', certificate: { status: 'issued', expires_at: expect.any(String) } });
    expect((await person.paas(['domains'])).stdout).toMatch(/^shop\.example\.test {2}active {2}certificate expires in \d+ d\n$/);
    expect((await visit(platform, 'busy')).status).toBe(200);

    expect((await person.paas(['domains:remove', host])).code).toBe(0);
    await expect.poll(() => ask(), { timeout: 20_000 }).toBe(404);
  });

  it('count every build start once, of builds that start at the same time too, and go on after kill -9', async () => {
    expect(await countStarts()).toEqual({ cold: 1, warm: 0 });
    for (const name of ['one', 'two']) {
      const app = await user.createApp(name);
      const copy = await user.createWorkingCopy(app.push_url, nodeApp(name));
      expect((await copy.push('-o', 'detach', 'paas', 'main')).code).toBe(0);
    }
    expect(await countStarts()).toEqual({ cold: 3, warm: 0 });
    const starts = await Promise.all(
      Array.from({ length: 24 }, (_, index) => user.ask('POST', `/v1/apps/${['one', 'two', 'busy'][index % 3]}/builds`, {})),
    );
    expect(starts.map(({ status }) => status)).toEqual(starts.map(() => 201));
    expect(await countStarts()).toEqual({ cold: 3, warm: 24 });

    await platform.kill();
    platform = await startPlatform({
      dataDir: platform.dataDir,
      ports: { http: platform.httpPort, https: platform.httpsPort, ssh: platform.sshPort },
    });
    expect(await countStarts()).toEqual({ cold: 3, warm: 24 });
    await user.api('POST', '/v1/apps/one/builds', {});
    expect(await countStarts()).toEqual({ cold: 3, warm: 25 });
  });

  it('of the platform itself name no app and no person, and no secret', async () => {
    const text = await scrape();
    expect(text).toContain('process_cpu_seconds_total');
    expect(text).toMatch(
      /paas_http_request_duration_seconds_count\{method="POST",route="\/v1\/apps\/:id\/builds",status="201"\} \d/,
    );
    for (const secret of ['busy', 'ada@example.com', user.token, 'shop.example']) expect(text).not.toContain(secret);
  });
});
