import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { kubernetesSchema } from '#shared/settings/kubernetes-settings.ts';
import { settingNames } from '#shared/settings/settings.ts';
import { createClientAddress, createWorkerClientAddress } from './client-address.ts';
import { parseEdgeSettings } from './edge-settings.ts';

const required = {
  PAAS_DATABASE_URL: 'postgres://u:p@db.example.com/paas',
  PAAS_INTERNAL_URL: 'http://10.0.0.1:9000/',
  PAAS_SECRET_KEY: `${'A'.repeat(43)}=`,
};

it('reads settings from text, whatever else a worker is bound to', () => {
  const settings = parseEdgeSettings({ ...required, HYPERDRIVE: { connectionString: 'x' }, PAAS_SIGNUP: null });
  expect(settings).toMatchObject({ internalUrl: 'http://10.0.0.1:9000', signup: 'open' });
});

it.each(Object.keys(required))('names %s when it is missing', (name) => {
  expect(() => parseEdgeSettings({ ...required, [name]: undefined })).toThrow(`${name}: is required at the edge`);
});

it('believes X-Forwarded-For of trusted proxies only, and of their list the last that is not a proxy', () => {
  const addressOf = createClientAddress(['10.0.0.0/8']);
  const request = new Request('http://x', { headers: { 'x-forwarded-for': '1.1.1.1, 203.0.113.7, 10.0.0.9' } });
  expect(addressOf(request, '10.0.0.1')).toBe('203.0.113.7');
  expect(addressOf(request, '198.51.100.1')).toBe('198.51.100.1');
  expect(addressOf(new Request('http://x'), '10.0.0.1')).toBe('10.0.0.1');
});

it('a worker believes CF-Connecting-IP of Cloudflare only; elsewhere the connection and trusted proxies say who it is', () => {
  const addressOf = createWorkerClientAddress(['10.0.0.0/8', '::1']);
  const requestBy = (cf: object | undefined): Request & { cf?: object } => {
    const request = new Request('http://x', { headers: { 'cf-connecting-ip': '203.0.113.1', 'x-forwarded-for': '203.0.113.2' } });
    return Object.assign(request, cf === undefined ? {} : { cf });
  };
  expect(addressOf(requestBy({ colo: 'FRA' }))).toBe('203.0.113.1');
  expect(addressOf(requestBy({ clientIp: '198.51.100.3:4711' }))).toBe('198.51.100.3');
  expect(addressOf(requestBy({ clientIp: '10.0.0.1:4711' }))).toBe('203.0.113.2');
  expect(addressOf(requestBy({ clientIp: '[::1]:4711' }))).toBe('203.0.113.2');
  expect(addressOf(requestBy(undefined))).toBe('unknown');
});

/** A worker does not use them: they are about apps, builds, repositories and ports of the machine that runs the rest. */
const ofTheMachine = [
  'PAAS_DATA_DIR',
  'PAAS_HOST',
  'PAAS_SSH_LISTEN_PORT',
  'PAAS_METRICS_PORT',
  'PAAS_INTERNAL_PORT',
  'PAAS_EDGE_PORT',
  'PAAS_PLATFORM',
  'PAAS_ORPHAN_DAYS',
  'PAAS_ALLOW_PRIVATE_SOURCES',
  'PAAS_GIT_TOLERATE',
  'PAAS_GIT_INDEXER',
  'PAAS_OBJECT_STORE_URL',
  'PAAS_OBJECT_STORE_REGION',
  'PAAS_OBJECT_STORE_ACCESS_KEY_ID',
  'PAAS_OBJECT_STORE_SECRET_ACCESS_KEY',
  'PAAS_OBJECT_STORE_CACHE_MIB',
  'PAAS_APP_NETWORK',
  'PAAS_ALLOW_NETWORKS',
  'PAAS_SHARE_REGISTRY_CREDENTIALS',
  'PAAS_IMAGE_MIRRORS',
  'PAAS_INSECURE_REGISTRIES',
  'PAAS_CONNECTIONS_PER_ADDRESS',
  'PAAS_DISK_RESERVE_MIB',
  'PAAS_IMAGE_MIB',
  ...Object.keys(kubernetesSchema),
];

it('workerd passes on every setting that the API uses', () => {
  const text = readFileSync(new URL('worker.capnp', import.meta.url), 'utf8');
  const bound = [...text.matchAll(/\(name = "(\w+)", fromEnvironment = "(\w+)"\)/g)].map(([, name, variable]) => [
    name,
    variable,
  ]);
  const used = settingNames.filter((name) => !ofTheMachine.includes(name)).sort();
  expect(bound).toEqual(used.map((name) => [name, name]));
});
