import { expect, it } from 'vitest';
import { createClientAddress } from './client-address.ts';
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
