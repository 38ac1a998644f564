import { expect, it } from 'vitest';
import { createArgon2Hasher } from './argon2-hasher.ts';
import { createWasmArgon2Hasher } from './wasm-argon2-hasher.ts';

const cost = { memory: 64, passes: 2, parallelism: 1 };
const hashers = { node: createArgon2Hasher(cost), wasm: createWasmArgon2Hasher(cost) };

it.each([
  ['node', 'wasm'],
  ['wasm', 'node'],
  ['wasm', 'wasm'],
] as const)('a hash of %s is read by %s, and has its costs', async (one, other) => {
  for (const password of ['correct horse', 'ü€𐍈', 'a'.repeat(1000)]) {
    const hash = await hashers[one].hash(password);
    expect(hash).toMatch(/^\$argon2id\$v=19\$m=64,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
    expect(await hashers[other].verify(password, hash)).toBe(true);
    expect(await hashers[other].verify(`${password}x`, hash)).toBe(false);
  }
});

it.each(['node', 'wasm'] as const)('%s refuses a hash that is damaged', async (name) => {
  await expect(hashers[name].verify('x', '$argon2id$v=19$m=64')).rejects.toThrow('malformed password hash');
});
