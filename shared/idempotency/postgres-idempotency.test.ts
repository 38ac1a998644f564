import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { describeIdempotencyKeys } from '#shared/idempotency/contract/idempotency.ts';
import { createPostgresIdempotencyKeys } from '#shared/idempotency/postgres-idempotency.ts';
import { createSecretBox, type SecretBox } from '#shared/secret-box.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/database/test-database.ts';

let database: TestDatabase;
let secrets: SecretBox;
beforeAll(async () => {
  database = await createTestDatabase();
  secrets = await createSecretBox(crypto.getRandomValues(new Uint8Array(32)));
});
afterAll(() => database?.close());

const create = () => createPostgresIdempotencyKeys({ db: database.db, secrets, clock: systemClock });

describeIdempotencyKeys('PostgreSQL', create);

it('keeps answers sealed', async () => {
  const request = { subject: 'ada', key: 'key-1', requestHash: 'a' };
  await create().claim(request);
  await create().complete(request, { status: 201, body: '{"data":"canary-5d1f"}' });
  const rows = await database.db.selectFrom('idempotency_keys').selectAll().where('subject', '=', 'ada').execute();
  expect(rows).toHaveLength(1);
  expect(JSON.stringify(rows)).not.toContain('canary-5d1f');
});
