import { sql } from 'kysely';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { PostgresClient } from '#shared/database/postgres-client.ts';
import type { ObjectId } from '#shared/ids.ts';
import { type CoreFixture, createCoreFixture } from '#test/support/core/core-fixture.ts';

let core: CoreFixture;
let other: PostgresClient;
beforeAll(async () => {
  core = await createCoreFixture();
  const { rows } = await sql<{ name: string }>`select current_database() as name`.execute(core.context.db);
  const url = new URL(inject('postgresUrl'));
  url.pathname = rows[0]?.name ?? '';
  other = new PostgresClient(url.href);
  await other.connect();
});
afterAll(async () => {
  await other.end();
  await core.close();
});

it('as many pushes at once as the database has connections do not wait for each other for ever', async () => {
  const owner = await core.signUp();
  const pushes: (() => Promise<unknown>)[] = [];
  for (let count = 0; count < 5; count++) {
    const app = await core.createApp(owner);
    const newOid = (await app.commit()) as ObjectId;
    expect((await app.push('HEAD:refs/tags/sent')).code).toBe(0);
    const { applyPush } = await core.services.pushes.openRepository(owner, app.name, 'write');
    const commands = [{ name: 'refs/heads/main', oldOid: undefined, newOid }];
    const request = { commands, atomic: false, pushOptions: [], pack: undefined };
    pushes.push(() => applyPush(request, () => undefined, new AbortController().signal));
  }
  await other.query('begin');
  await other.query('select 1 from apps for update');
  const accepting = pushes.map((push) => push());
  const countWaiting = async () => {
    await other.query('select pg_stat_clear_snapshot()');
    const waiting = "datname = current_database() and wait_event_type = 'Lock'";
    return (await other.query(`select 1 from pg_stat_activity where ${waiting}`)).rowCount;
  };
  await expect.poll(countWaiting, { timeout: 20_000 }).toBe(pushes.length);
  await other.query('commit');
  await expect.poll(async () => (await other.query('select 1 from builds')).rowCount, { timeout: 20_000 }).toBe(pushes.length);
  await core.startWorker();
  for (const result of await Promise.all(accepting)) expect(result).toEqual([{ name: 'refs/heads/main', status: 'ok' }]);
});
