import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

const run = promisify(execFile);
let test: TestApi;
let ada: TestUser;
let directory: string;
beforeAll(async () => {
  test = await createTestApi();
  ada = await test.signUp();
  directory = await mkdtemp(join(tmpdir(), 'paas-keys-'));
});
afterAll(async () => {
  await test?.close();
  await rm(directory, { recursive: true, force: true });
});

async function newKey(type = 'ed25519'): Promise<{ publicKey: string; fingerprint: string }> {
  const path = join(directory, crypto.randomUUID());
  await run('ssh-keygen', ['-q', '-t', type, '-N', '', '-C', 'ada@laptop', '-f', path]);
  const { stdout } = await run('ssh-keygen', ['-lf', `${path}.pub`]);
  return { publicKey: await readFile(`${path}.pub`, 'utf8'), fingerprint: stdout.split(' ')[1] ?? '' };
}

describe('an SSH key', () => {
  it.each(['ed25519', 'ecdsa', 'rsa'])('of type %s is added with the fingerprint that ssh-keygen prints', async (type) => {
    const { publicKey, fingerprint } = await newKey(type);
    const { status, body } = await test.ask('POST', '/api/v1/auth/ssh-keys', {
      as: ada,
      json: { name: 'laptop', public_key: publicKey },
    });
    expect(status).toBe(201);
    expect(body.data).toMatchObject({ name: 'laptop', fingerprint, last_used_at: null });
    expect(body.data.public_key).toBe(publicKey.split(' ').slice(0, 2).join(' '));
  });

  it('is listed for its owner only, newest first, page by page', async () => {
    const bob = await test.signUp();
    for (const name of ['one', 'two', 'three']) {
      await test.ask('POST', '/v1/auth/ssh-keys', { as: bob, json: { name, public_key: (await newKey()).publicKey } });
    }
    const names: string[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const { body } = await test.ask('GET', `/v1/auth/ssh-keys?limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`, { as: bob });
      names.push(...body.data.map((key: { name: string }) => key.name));
      cursor = body.next_cursor;
    }
    expect(names).toEqual(['three', 'two', 'one']);
  });

  it.each(['id', 'fingerprint'] as const)('is deleted by its %s, by its owner only', async (field) => {
    const { body } = await test.ask('POST', '/v1/auth/ssh-keys', {
      as: ada,
      json: { name: 'old', public_key: (await newKey()).publicKey },
    });
    const path = `/v1/auth/ssh-keys/${encodeURIComponent(body.data[field])}`;
    const foreign = await test.ask('DELETE', path, { as: await test.signUp() });
    expect([foreign.status, foreign.body.error.message]).toEqual([404, 'No such SSH key.']);
    expect((await test.ask('DELETE', path, { as: ada })).status).toBe(204);
    expect((await test.ask('DELETE', path, { as: ada })).status).toBe(404);
  });

  it('belongs to one user only', async () => {
    const { publicKey } = await newKey();
    await test.ask('POST', '/v1/auth/ssh-keys', { as: ada, json: { name: 'mine', public_key: publicKey } });
    const taken = await test.ask('POST', '/v1/auth/ssh-keys', {
      as: await test.signUp(),
      json: { name: 'mine', public_key: publicKey },
    });
    expect([taken.status, taken.body.error.code]).toEqual([409, 'conflict']);
  });

  it.each(['not a key', 'ssh-ed25519 AAAA', 'ssh-dss AAAAB3NzaC1kc3M=', '-----BEGIN OPENSSH PRIVATE KEY-----'])(
    'that reads %j is refused',
    async (text) => {
      expect((await test.ask('POST', '/v1/auth/ssh-keys', { as: ada, json: { name: 'x', public_key: text } })).status).toBe(422);
    },
  );
});

describe('a key that another account has registered', () => {
  const baseUrl = 'http://localhost:8080';

  async function add(as: TestUser, publicKey: string, signature?: string) {
    const json = { name: 'laptop', public_key: publicKey, ...(signature !== undefined && { signature }) };
    return test.ask('POST', '/v1/auth/ssh-keys', { as, json });
  }
  async function makeKey() {
    const path = join(directory, crypto.randomUUID());
    await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', path]);
    const sign = async (text: string, namespace = 'paas'): Promise<string> => {
      await writeFile(`${path}.txt`, text);
      await rm(`${path}.txt.sig`, { force: true });
      await run('ssh-keygen', ['-Y', 'sign', '-q', '-n', namespace, '-f', path, `${path}.txt`]);
      return readFile(`${path}.txt.sig`, 'utf8');
    };
    return { publicKey: await readFile(`${path}.pub`, 'utf8'), sign };
  }
  const textFor = (user: TestUser, url = baseUrl): string => `SSH key of user ${user.id} at ${url}`;
  const keysOf = async (user: TestUser): Promise<number> =>
    (await test.ask('GET', '/v1/auth/ssh-keys', { as: user })).body.data.length;

  it('is refused without a proof, with the text to sign', async () => {
    const [eve, owner] = [await test.signUp(), await test.signUp()];
    const { publicKey } = await makeKey();
    expect((await add(eve, publicKey)).status).toBe(201);
    const { status, body } = await add(owner, publicKey);
    expect([status, body.error.details]).toEqual([409, [{ path: 'signature', message: textFor(owner) }]]);
  });

  it.each(['', '\n'])('moves to who signs their own user id by it, with the line end %j', async (lineEnd) => {
    const [eve, owner] = [await test.signUp(), await test.signUp()];
    const { publicKey, sign } = await makeKey();
    await add(eve, publicKey);
    expect((await add(owner, publicKey, await sign(textFor(owner) + lineEnd))).status).toBe(201);
    expect([await keysOf(eve), await keysOf(owner)]).toEqual([0, 1]);
    expect((await add(eve, publicKey)).status).toBe(409);
    const blob = Uint8Array.fromBase64(publicKey.split(' ')[1] ?? '');
    expect(await test.services.sshKeys.resolveKey(blob)).toMatchObject({ userId: owner.id });
  });

  it('does not move by a signature for somebody else, another platform, another use, or by another key', async () => {
    const [eve, owner] = [await test.signUp(), await test.signUp()];
    const [key, other] = [await makeKey(), await makeKey()];
    await add(owner, key.publicKey);
    for (const signature of [
      await key.sign(textFor(owner)),
      await key.sign(textFor(eve, 'https://elsewhere.example.com')),
      await key.sign(textFor(eve), 'git'),
      await other.sign(textFor(eve)),
      'not a signature',
    ]) {
      const { status, body } = await add(eve, key.publicKey, signature);
      expect([status, body.error.details[0]?.path]).toEqual([422, 'signature']);
    }
    expect([await keysOf(eve), await keysOf(owner)]).toEqual([0, 1]);
  });

  it('stays a conflict for who has it already, also with a proof', async () => {
    const owner = await test.signUp();
    const { publicKey, sign } = await makeKey();
    expect((await add(owner, publicKey, await sign(textFor(owner)))).status).toBe(201);
    expect((await add(owner, publicKey, await sign(textFor(owner)))).body.error.message).toBe('This key is already registered.');
  });
});
