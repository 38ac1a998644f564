import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { atSmallPlatform } from '#cli/testing/at-small-platform.ts';
import { smallPlatformPassword } from '#cli/testing/small-platform.ts';

const at = atSmallPlatform();
const credentialsFile = () => join(at.person.home, '.config/paas/credentials.json');

describe('an account', () => {
  it('is made and used without a terminal', async () => {
    const signup = await at.person.paas(['signup', '--email', 'ada@example.com', '--password-stdin'], {
      input: smallPlatformPassword,
    });
    expect(signup.code).toBe(0);
    const { code, stdout } = await at.person.paas(['whoami']);
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'ada@example.com\n' });
  });

  it('is made in the team of an invitation', async () => {
    const signup = ['signup', '--email', 'ada@example.com', '--password-stdin', '--json'];
    const { stdout } = await at.person.paas([...signup, '--invitation', 'paas_inv_x'], { input: smallPlatformPassword });
    expect(JSON.parse(stdout)).toMatchObject({ tenant: { name: 'engines' } });
  });

  it('takes the password from PAAS_PASSWORD, and without any says how to give one', async () => {
    expect(
      (await at.person.paas(['login', '-e', 'ada@example.com'], { env: { PAAS_PASSWORD: smallPlatformPassword } })).code,
    ).toBe(0);
    const without = await at.person.paas(['login', '-e', 'ada@example.com']);
    expect(without.code).toBe(2);
    expect(without.stderr).toContain('--password-stdin');
  });

  it('is kept in a file that only its owner can read, by host', async () => {
    await at.logIn();
    expect((await stat(credentialsFile())).mode & 0o777).toBe(0o600);
    expect((await stat(join(at.person.home, '.config/paas'))).mode & 0o777).toBe(0o700);
    const stored = JSON.parse(await readFile(credentialsFile(), 'utf8')) as { hosts: object };
    expect(Object.keys(stored.hosts)).toEqual([at.platform.host]);
  });

  it('is where the last login was, also without PAAS_API_URL', async () => {
    await at.logIn();
    expect((await at.person.paas(['whoami'], { env: { PAAS_API_URL: '' } })).stdout).toBe('ada@example.com\n');
  });

  it('with a wrong password is refused with code 3 and nothing is stored', async () => {
    const { code, stderr } = await at.person.paas(['login', '-e', 'ada@example.com', '--password-stdin'], {
      input: 'wrong password',
    });
    expect(code).toBe(3);
    expect(stderr).toContain('The email or the password is wrong.');
    await expect(stat(credentialsFile())).rejects.toThrow('ENOENT');
  });

  it('is forgotten by logout, after which commands end with code 3 and say how to log in', async () => {
    await at.logIn();
    expect((await at.person.paas(['logout'])).code).toBe(0);
    const { code, stderr } = await at.person.paas(['apps']);
    expect(code).toBe(3);
    expect(stderr).toContain('paas login');
  });

  it('serves CI by PAAS_TOKEN, which is stored nowhere', async () => {
    await at.logIn();
    const stored = JSON.parse(await readFile(credentialsFile(), 'utf8')) as { hosts: Record<string, { access_token: string }> };
    await at.person.paas(['logout']);
    const token = stored.hosts[at.platform.host]?.access_token ?? '';
    expect((await at.person.paas(['whoami'], { env: { PAAS_TOKEN: token } })).stdout).toBe('ada@example.com\n');
    expect(await readFile(credentialsFile(), 'utf8')).not.toContain(token);
  });
});

describe('an expired access token', () => {
  it('is refreshed once when eight commands run at once, and none of them fails', async () => {
    at.platform.tokenSeconds = 1;
    await at.logIn();
    at.platform.tokenSeconds = 3600;
    const results = await Promise.all(Array.from({ length: 8 }, () => at.person.paas(['whoami'])));
    expect(results.map(({ code }) => code)).toEqual(Array(8).fill(0));
    expect(at.platform.refreshes).toEqual({ good: 1, reused: 0 });
  });

  it('that the platform no longer takes is refreshed though its time is not over', async () => {
    await at.logIn();
    at.platform.expireTokens();
    expect((await at.person.paas(['whoami'])).code).toBe(0);
    expect(at.platform.refreshes).toEqual({ good: 1, reused: 0 });
  });
});
