import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CommandResult, createPerson, type Person } from '#cli/testing/person.ts';
import { type RunningPlatform, removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { run, runChecked } from '#test/support/run-program.ts';

const password = 'correct horse battery';

/** In order: each test goes on where the one before ended. */
describe('a team at a real platform', () => {
  let platform: RunningPlatform;
  let ada: Person;
  let bob: Person;

  beforeAll(async () => {
    platform = await startPlatform();
    ada = await signUp('ada');
    bob = await signUp('bob');
    await runChecked('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(bob.home, 'key')]);
    await ok(bob, ['keys:add', join(bob.home, 'key.pub')]);
    await ok(ada, ['create', 'hello', '--no-remote']);
  });
  afterAll(async () => {
    await ada?.remove();
    await bob?.remove();
    await removePlatform(platform);
  });

  async function signUp(name: string): Promise<Person> {
    const person = await createPerson({ PAAS_API_URL: platform.baseUrl });
    await ok(person, ['signup', '-e', `${name}@example.com`, '--password-stdin'], {}, password);
    return person;
  }
  async function ok(
    person: Person,
    args: readonly string[],
    env: Record<string, string> = {},
    input = '',
  ): Promise<CommandResult> {
    const result = await person.paas(args, { env, input });
    expect([args, result.stderr, result.code]).toEqual([args, result.stderr, 0]);
    return result;
  }
  /** Bob's git, by Bob's key. */
  function lsRemote() {
    const options = `-F none -i ${join(bob.home, 'key')} -o IdentitiesOnly=yes -o BatchMode=yes`;
    const hosts = `-o StrictHostKeyChecking=accept-new -o UserKnownHostsFile=${join(bob.home, 'known_hosts')}`;
    const url = `ssh://git@127.0.0.1:${platform.sshPort}/hello.git`;
    return run('git', ['ls-remote', url], {
      env: { GIT_SSH_COMMAND: `ssh ${options} ${hosts}`, GIT_CONFIG_GLOBAL: '/dev/null' },
    });
  }
  const tenantOf = async (person: Person): Promise<string> => {
    const { stdout } = await ok(person, ['teams', '--json']);
    return (JSON.parse(stdout) as { id: string }[]).at(-1)?.id ?? '';
  };

  it('is closed to others, also over SSH', async () => {
    expect((await bob.paas(['info', '-a', 'hello'])).code).not.toBe(0);
    expect((await lsRemote()).code).not.toBe(0);
  });

  it('opens by an invitation, handed on as the text that was printed', async () => {
    const invitation = (await ok(ada, ['members:invite', 'bob@example.com'])).stdout.trim();
    const eve = await signUp('eve');
    expect((await eve.paas(['members:join', invitation])).code).not.toBe(0);
    await eve.remove();
    await ok(bob, ['members:join', invitation]);
    expect((await ok(ada, ['members'])).stdout).toMatch(/bob@example\.com +developer/);
  });

  it('is entered by naming it; keys open its apps without that', async () => {
    const env = { PAAS_TENANT: await tenantOf(ada) };
    expect((await bob.paas(['info', '-a', 'hello'])).code).not.toBe(0);
    await ok(bob, ['info', '-a', 'hello'], env);
    expect((await lsRemote()).code).toBe(0);
    await ok(ada, ['members:role', 'bob@example.com', 'viewer']);
    expect((await bob.paas(['config:set', 'A=1', '-a', 'hello'], { env })).stderr).toContain('viewer');
  });

  it('gives tokens to programs, shown once, that do what their scope says until they are revoked', async () => {
    const token = (await ok(ada, ['tokens:create', 'ci', '--scope', 'read', '--days', '1'])).stdout.trim();
    expect(token).toMatch(/^paas_[\w-]{43}$/);
    const ci = await createPerson({ PAAS_API_URL: platform.baseUrl, PAAS_TOKEN: token });
    await ok(ci, ['info', '-a', 'hello']);
    expect((await ci.paas(['config:set', 'A=1', '-a', 'hello'])).code).not.toBe(0);
    expect((await ci.paas(['tokens:create', 'more'])).stderr).toContain('Log in');
    expect((await ok(ada, ['tokens'])).stdout).toMatch(/ci +read +expires in 2[34] h +used/);
    await ok(ada, ['tokens:revoke', 'ci']);
    expect((await ci.paas(['info', '-a', 'hello'])).stderr).toContain('revoked');
    await ci.remove();
  });

  it('shuts who is removed out at once: login, tokens and keys', async () => {
    const env = { PAAS_TENANT: await tenantOf(ada) };
    const token = (await ok(bob, ['tokens:create', 'ci', '--scope', 'read'], env)).stdout.trim();
    await ok(bob, ['info', '-a', 'hello'], { PAAS_TOKEN: token });
    await ok(ada, ['members:remove', 'bob@example.com']);
    expect((await bob.paas(['info', '-a', 'hello'], { env })).code).not.toBe(0);
    expect((await bob.paas(['info', '-a', 'hello'], { env: { PAAS_TOKEN: token } })).code).not.toBe(0);
    expect((await lsRemote()).code).not.toBe(0);
    await ok(bob, ['apps']);
  });

  it('keeps an owner', async () => {
    const { code, stderr } = await ada.paas(['members:remove', 'ada@example.com']);
    expect(code).not.toBe(0);
    expect(stderr).toContain('needs an owner');
  });
});
