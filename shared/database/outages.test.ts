import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { isDatabaseOutage } from '#shared/database/outages.ts';
import { PostgresClient } from '#shared/database/postgres-client.ts';

it('a unix socket that is not there yet is an outage, and a missing file is not', async () => {
  const host = await mkdtemp(join(tmpdir(), 'paas-outage-'));
  try {
    const client = new PostgresClient({ host, user: 'paas', database: 'paas' });
    const refusal: unknown = await client.connect().catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: 'ENOENT' });
    expect(isDatabaseOutage(refusal)).toBe(true);
    expect(isDatabaseOutage(Object.assign(new Error('no such file'), { code: 'ENOENT', syscall: 'open' }))).toBe(false);
  } finally {
    await rm(host, { recursive: true });
  }
});
