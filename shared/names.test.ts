import { describe, expect, it } from 'vitest';
import { type AppId, newTenantId, newUuid, type TenantId } from '#shared/ids.ts';
import { checkAppName, kvstoreName, previewName } from '#shared/names.ts';

describe('checkAppName', () => {
  it.each(['a', 'hello', 'hello-2', `a${'b'.repeat(38)}c`])('takes %s', (name) => {
    expect(() => checkAppName(name)).not.toThrow();
  });

  it.each([
    '',
    '-a',
    'a-',
    '1a',
    'Hello',
    'a_b',
    'a.b',
    'a--b',
    'xn--a',
    `a${'b'.repeat(40)}`,
    'api',
    'www',
    'localhost',
    'a\n',
    '../a',
    'a b',
    'ä',
  ])('refuses %j', (name) => {
    expect(() => checkAppName(name)).toThrow(expect.objectContaining({ code: 'validation_failed' }));
  });
});

describe('kvstoreName', () => {
  it('is 53 characters and different for every app', () => {
    const names = Array.from({ length: 100 }, () => kvstoreName(newTenantId(), newUuid<AppId>()));
    expect(new Set(names).size).toBe(100);
    expect(names.every((name) => name.length === 53)).toBe(true);
  });

  it('never ends in a hyphen when it is cut', () => {
    const appId = `${'a'.repeat(35)}-bcdef` as AppId;
    expect(kvstoreName('tenant01' as TenantId, appId)).toMatch(/a$/);
  });
});

describe('previewName', () => {
  it.each([
    ['hello', 'feature/Login_Page', 'hello-feature-login-page'],
    ['hello', '--weird--', 'hello-weird'],
    ['hello', 'ünïcode', 'hello-n-code'],
    ['a'.repeat(30), 'b'.repeat(30), `${'a'.repeat(30)}-${'b'.repeat(9)}`],
  ])('%s with branch %s is %s', (app, branch, expected) => {
    expect(previewName(app, branch)).toBe(expected);
    expect(() => checkAppName(expected)).not.toThrow();
  });
});
