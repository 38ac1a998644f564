import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { atSmallPlatform } from '#cli/testing/at-small-platform.ts';
import { smallPlatformPassword } from '#cli/testing/small-platform.ts';
import { secondsPerHour } from '#shared/durations.ts';

const at = atSmallPlatform();
const credentialsFile = () => join(at.person.home, '.config/paas/credentials.json');

describe('an account', () => {
  it('can be created and used without a terminal', async () => {
    const signup = await at.paas(['signup', '--email', 'ada@example.com', '--password-stdin'], {
      input: smallPlatformPassword,
    });
    expect(signup.code).toBe(0);
    const { code, stdout } = await at.paas(['whoami']);
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'ada@example.com\n' });
  });

  it('can be created in the team of an invitation', async () => {
    const signup = ['signup', '--email', 'ada@example.com', '--password-stdin', '--json'];
    const { stdout } = await at.paas([...signup, '--invitation', 'paas_inv_x'], { input: smallPlatformPassword });
    expect(JSON.parse(stdout)).toMatchObject({ tenant: { name: 'engines' } });
  });

  it('takes the password from PAAS_PASSWORD, and explains how to pass one', async () => {
    expect((await at.paas(['login', '-e', 'ada@example.com'], { env: { PAAS_PASSWORD: smallPlatformPassword } })).code).toBe(0);
    const without = await at.paas(['login', '-e', 'ada@example.com']);
    expect(without.code).toBe(2);
    expect(without.stderr).toContain('--password-stdin');
  });

  it('is stored per host in a file that only its owner can read', async () => {
    await at.logIn();
    expect((await stat(credentialsFile())).mode & 0o777).toBe(0o600);
    expect((await stat(join(at.person.home, '.config/paas'))).mode & 0o777).toBe(0o700);
    const stored = JSON.parse(await readFile(credentialsFile(), 'utf8')) as { hosts: object };
    expect(Object.keys(stored.hosts)).toEqual([at.platform.host]);
  });

  it('is used at the platform of the last login without PAAS_API_URL', async () => {
    await at.logIn();
    expect((await at.paas(['whoami'], { env: { PAAS_API_URL: '' } })).stdout).toBe('ada@example.com\n');
  });

  it('with a wrong password ends with code 3 and is not stored', async () => {
    const { code, stderr } = await at.paas(['login', '-e', 'ada@example.com', '--password-stdin'], {
      input: 'wrong password',
    });
    expect(code).toBe(3);
    expect(stderr).toContain('The email or the password is wrong.');
    await expect(stat(credentialsFile())).rejects.toThrow('ENOENT');
  });

  it('is removed by logout; then commands end with code 3 and explain how to log in', async () => {
    await at.logIn();
    expect((await at.paas(['logout'])).code).toBe(0);
    const { code, stderr } = await at.paas(['apps']);
    expect(code).toBe(3);
    expect(stderr).toContain('paas login');
  });

  it('can be used by PAAS_TOKEN, which is not stored', async () => {
    await at.logIn();
    const stored = JSON.parse(await readFile(credentialsFile(), 'utf8')) as { hosts: Record<string, { access_token: string }> };
    await at.paas(['logout']);
    const token = stored.hosts[at.platform.host]?.access_token ?? '';
    expect((await at.paas(['whoami'], { env: { PAAS_TOKEN: token } })).stdout).toBe('ada@example.com\n');
    expect(await readFile(credentialsFile(), 'utf8')).not.toContain(token);
  });
});

describe('an expired access token', () => {
  it('is refreshed once when eight processes need it at the same time, and all succeed', async () => {
    at.platform.tokenSeconds = 1;
    await at.logIn();
    at.platform.tokenSeconds = secondsPerHour;
    const results = await Promise.all(Array.from({ length: 8 }, () => at.person.paas(['whoami'])));
    expect(results.map(({ code }) => code)).toEqual(Array(8).fill(0));
    expect(at.platform.refreshes).toEqual({ good: 1, reused: 0 });
  });

  it('is also refreshed when the platform refuses it before its expiry', async () => {
    await at.logIn();
    at.platform.expireTokens();
    expect((await at.paas(['whoami'])).code).toBe(0);
    expect(at.platform.refreshes).toEqual({ good: 1, reused: 0 });
  });
});
