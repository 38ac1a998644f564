import { expect, it } from 'vitest';
import { TestClock } from '#test/support/test-clock.ts';
import { createCallTokens } from './call-tokens.ts';

const key = new Uint8Array(32).fill(1);

it('are valid for their call, body and minute only', async () => {
  const clock = TestClock.standing();
  const tokens = await createCallTokens(key, clock);
  const token = await tokens.sign('/internal/logs/readLogs', '["a"]');
  await tokens.verify(token, '/internal/logs/readLogs', '["a"]');
  const refused = { code: 'unauthorized' };
  await expect(tokens.verify(token, '/internal/caches/deleteCache', '["a"]')).rejects.toMatchObject(refused);
  await expect(tokens.verify(token, '/internal/logs/readLogs', '["b"]')).rejects.toMatchObject(refused);
  await expect(tokens.verify('', '/internal/logs/readLogs', '["a"]')).rejects.toMatchObject(refused);
  clock.advance(120_000);
  await expect(tokens.verify(token, '/internal/logs/readLogs', '["a"]')).rejects.toMatchObject(refused);
});
