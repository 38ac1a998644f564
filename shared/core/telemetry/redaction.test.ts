import { describe, expect, it } from 'vitest';
import { createRedactor } from '#shared/core/telemetry/redaction.ts';

describe('createRedactor', () => {
  const redact = createRedactor({
    NODE_ENV: 'production',
    API_TOKEN: 'tok+en/with=marks',
    DATABASE_URL: 'postgres://app:s3cret-word@127.0.0.1:5432/app',
    SHORT_KEY: 'abc',
  });

  it.each([
    ['as it is', 'tok+en/with=marks'],
    ['URL-encoded', encodeURIComponent('tok+en/with=marks')],
    ['in base64', Buffer.from('tok+en/with=marks').toString('base64')],
    ['a whole connection URL', 'postgres://app:s3cret-word@127.0.0.1:5432/app'],
    ['the password of a connection URL', 's3cret-word'],
  ])('replaces a secret %s', (_how, secret) => {
    const line = redact(`before ${secret} after`);
    expect(line).not.toContain(secret.replace(/=+$/, ''));
    expect(line).toMatch(/^before \[redacted\].* after$/);
  });

  it('leaves ordinary variables and short values readable', () => {
    expect(redact('NODE_ENV=production abc')).toBe('NODE_ENV=production abc');
  });
});
