import { expect, it } from 'vitest';
import { type Lifetime, startWithLifetime } from '#deploy/parts/lifetime.ts';

let ended: string[] = [];

function startParts(lifetime: Lifetime, ...names: readonly string[]): Lifetime {
  ended = [];
  for (const name of names) lifetime.onEnd((ending) => ended.push(`${name}: ${ending}`));
  return lifetime;
}

it.each(['stop', 'restart'] as const)('parts are ended once, the last one first, and learn that it is a %s', async (ending) => {
  const lifetime = await startWithLifetime(async (new_) => startParts(new_, 'database', 'api'));
  expect(ended).toEqual([]);
  await lifetime.end(ending);
  await lifetime.end('stop');
  expect(ended).toEqual([`api: ${ending}`, `database: ${ending}`]);
});

it('a start that fails ends what it had started, as it asked for', async () => {
  const failing = startWithLifetime(async (lifetime) => {
    startParts(lifetime, 'database', 'api');
    lifetime.endingOnFailure = 'restart';
    throw new Error('the port is taken');
  });
  await expect(failing).rejects.toThrow('the port is taken');
  expect(ended).toEqual(['api: restart', 'database: restart']);
});

it('a part that cannot be ended keeps no other one running', async () => {
  const lifetime = await startWithLifetime(async (new_) => {
    startParts(new_, 'database');
    new_.onEnd(() => Promise.reject(new Error('stuck')));
    return new_;
  });
  await expect(lifetime.end('stop')).rejects.toThrow('stuck');
  expect(ended).toEqual(['database: stop']);
});
