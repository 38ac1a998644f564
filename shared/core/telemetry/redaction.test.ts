import { describe, expect, it } from 'vitest';
import { createLineRedactor, createRedactor } from '#shared/core/telemetry/redaction.ts';
import { createRandom } from '#test/support/random.ts';

const privateKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgevZzL1gdAFr8
3tOtYHzyFOLsC8ruGgPW2cKGqQlB
-----END PRIVATE KEY-----`;

const environment = {
  NODE_ENV: 'production',
  API_TOKEN: 'tok+en/with=marks"',
  DATABASE_URL: 'postgres://app:s3cret-word@127.0.0.1:5432/app',
  CACHE_AT: 'redis://:an%2Fother-word@127.0.0.1:6379',
  SIGNING: privateKey,
  PUBLIC_URL: 'https://shop.example.com/api',
  WEBHOOK_URL: 'https://hooks.example.com/services/T0/0123456789abcdefghij',
  STRIPE: 'sk_live_51HabcDEF0123456789',
  SHORT_KEY: 'abc',
  SIGNING_KEY: privateKey,
};

describe('createRedactor', () => {
  const redact = createRedactor(environment, { API_TOKEN: 'the-token-of-the-release-before' });

  it.each([
    ['as it is', 'tok+en/with=marks"'],
    ['URL-encoded', encodeURIComponent('tok+en/with=marks"')],
    ['JSON-encoded', JSON.stringify('tok+en/with=marks"').slice(1, -1)],
    ['in base64', Buffer.from('tok+en/with=marks"').toString('base64')],
    ['in base64 for URLs', Buffer.from('tok+en/with=marks"').toString('base64url')],
    ['a whole connection URL', 'postgres://app:s3cret-word@127.0.0.1:5432/app'],
    ['the password of a connection URL', 's3cret-word'],
    ['a connection URL in base64', Buffer.from('postgres://app:s3cret-word@127.0.0.1:5432/app').toString('base64')],
    ['the password of a URL in a variable of any name', 'an%2Fother-word'],
    ['the same, decoded', 'an/other-word'],
    ['an address with a secret in its path', 'https://hooks.example.com/services/T0/0123456789abcdefghij'],
    ['a random value of any name', 'sk_live_51HabcDEF0123456789'],
    ['a line of a private key', '3tOtYHzyFOLsC8ruGgPW2cKGqQlB'],
    ['a private key in JSON', JSON.stringify(privateKey).slice(1, -1)],
    ['of another environment', 'the-token-of-the-release-before'],
  ])('replaces a secret %s', (_how, secret) => {
    const line = redact(`before ${secret} after`);
    expect(line).not.toContain(secret.replace(/=+$/, ''));
    expect(line).toMatch(/^before \[redacted\].* after$/);
  });

  it('replaces a password inside base64 of a longer text, wherever it begins', () => {
    for (const before of ['', 'u', 'us', 'user:', 'user1:']) {
      const header = Buffer.from(`${before}s3cret-word and more`).toString('base64');
      const line = redact(`Basic ${header}`);
      expect(line).toContain('[redacted]');
      expect(Buffer.from(line.slice(6).replace(/.*\]/, ''), 'base64').toString('latin1')).not.toContain('3cret-w');
    }
  });

  it('leaves ordinary variables, public addresses and short values readable', () => {
    for (const line of ['NODE_ENV=production abc', 'at https://shop.example.com/api', '-----BEGIN PRIVATE KEY-----'])
      expect(redact(line)).toBe(line);
  });

  it('replaces what replacing one secret after the other does', () => {
    const random = createRandom(7);
    const word = (length: number): string => Array.from({ length }, () => 'abAB01'[random(6)]).join('');
    const secrets = Array.from({ length: 40 }, (_, at) => `${word(8 + (at % 9))}#${at}`);
    const replace = createRedactor(Object.fromEntries(secrets.map((secret, at) => [`KEY_${at}`, secret])));
    for (let round = 0; round < 500; round += 1) {
      const parts = Array.from({ length: 6 }, () => (random(2) === 0 ? word(random(30)) : (secrets[random(40)] ?? '')));
      const expected = parts.map((part) => (secrets.includes(part) ? '[redacted]' : part)).join(' ');
      expect(replace(parts.join(' '))).toBe(expected);
    }
  });
});

describe('createLineRedactor', () => {
  const secret = 'correct-horse-battery-staple';
  const line = `${'x'.repeat(8000)}${secret}${'y'.repeat(300)}`;

  it('replaces a secret in the middle of which a long line was split', () => {
    for (let cut = 8001; cut < 8000 + secret.length; cut += 1) {
      const { redact } = createLineRedactor({ A_SECRET: secret });
      const seen = redact('web.1 stdout', line.slice(0, cut)) + redact('web.1 stdout', line.slice(cut));
      const shown = seen.replaceAll(/x+|y+|\[redacted\]/g, '');
      expect(shown.length, shown).toBeLessThan(4);
    }
  });

  it('does so for each stream, also if lines of others come between', () => {
    const { redact } = createLineRedactor({ A_SECRET: secret });
    redact('web.1 stdout', line.slice(0, 8014));
    expect(redact('web.2 stdout', secret.slice(14))).toBe(secret.slice(14));
    expect(redact('web.1 stdout', secret.slice(14))).toBe('[redacted]');
    expect(redact('web.1 stdout', secret.slice(14))).toBe(secret.slice(14));
  });
});
