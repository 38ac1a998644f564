import { setTimeout as sleep } from 'node:timers/promises';
import type { fetch } from 'undici';
import { PostgresClient } from '#shared/database/postgres-client.ts';
import type { RunningPlatform } from '#test/support/platform/running-platform.ts';

export interface BenchUser {
  token: string;
  tenantId: string;
  /** An app of theirs, with builds, a release and a deploy. */
  appId: string;
}

/** Signs users up as people do, each from an address of their own, and gives each an app. */
export async function signUpUsers(platform: RunningPlatform, count: number, send: typeof fetch): Promise<BenchUser[]> {
  const users: BenchUser[] = [];
  const signUp = async (index: number): Promise<void> => {
    const headers = { 'content-type': 'application/json', 'x-forwarded-for': `10.0.${index >> 8}.${index & 255}` };
    const body = JSON.stringify({ email: `user-${index}@example.com`, password: 'correct horse battery' });
    const signed = await send(`${platform.baseUrl}/v1/signup`, { method: 'POST', headers, body });
    const { data } = (await signed.json()) as { data: { access_token: string; tenant: { id: string } } };
    const authorization = `Bearer ${data.access_token}`;
    const made = await send(`${platform.baseUrl}/v1/apps`, {
      method: 'POST',
      headers: { ...headers, authorization },
      body: '{}',
    });
    const app = (await made.json()) as { data: { id: string } };
    users.push({ token: data.access_token, tenantId: data.tenant.id, appId: app.data.id });
  };
  for (let index = 0; index < count; index += 4) await Promise.all([0, 1, 2, 3].map((step) => signUp(index + step)));
  return users;
}

/**
 * Fills the database up to `apps` apps and `builds` builds, spread over tenants as they come: the users' own have 20
 * apps and 10 builds of their app at any size, so that only what is around them grows.
 */
export async function fillDatabase(url: string, users: readonly BenchUser[], apps: number, builds: number): Promise<void> {
  const client = new PostgresClient(url);
  await client.connect();
  const ids = users.map(({ appId }) => appId);
  const tenants = users.map(({ tenantId }) => tenantId);
  try {
    // All that is referred to is there: to look for it by row would take most of the time.
    await client.query('set session_replication_role = replica');
    await client.query(
      `insert into tenants (id, name) select 'z' || lpad(n::text, 7, '0'), 'tenant' from generate_series(1, $1::int / 20 + 1) n on conflict do nothing`,
      [apps],
    );
    const newApp = (tenant: string, source: string): string =>
      `insert into apps (id, tenant_id, name, branch, repository_id, created_by, created_at)
       select id, tenant, 'a' || replace(id::text, '-', ''), 'main', id, 'user', now() - random() * interval '300 days'
       from (select gen_random_uuid() as id, ${tenant} as tenant from ${source}) made`;
    const { rows } = await client.query<{ apps: number; own: number }>(
      'select count(*)::int as apps, count(*) filter (where tenant_id = any($1))::int as own from apps',
      [tenants],
    );
    if ((rows[0]?.own ?? 0) < users.length * 20) {
      await client.query(newApp('owner', 'unnest($1::text[]) owner, generate_series(1, 19)'), [tenants]);
      await client.query(newBuilds('unnest($1::uuid[])', 'generate_series(1, 10)'), [ids]);
      await client.query(`${newReleases}`, [ids]);
    }
    const missingApps = Math.max(0, apps - users.length * 20 - ((rows[0]?.apps ?? 0) - (rows[0]?.own ?? 0)));
    await client.query(newApp(`'z' || lpad((1 + n / 20)::text, 7, '0')`, `generate_series(0, ${missingApps - 1}) n`));
    const have = await client.query<{ builds: number; others: number }>(
      `select (select count(*)::int from builds) as builds, (select count(*)::int from apps where id <> all($1)) as others`,
      [ids],
    );
    const each = Math.max(1, Math.ceil((builds - (have.rows[0]?.builds ?? 0)) / (have.rows[0]?.others ?? 1)));
    await client.query(newBuilds('(select array_agg(id) from apps where id <> all($1::uuid[]))', `generate_series(1, ${each})`), [
      ids,
    ]);
    await client.query('vacuum analyze');
  } finally {
    await client.end();
  }
}

/** Waits until the jobs of the new apps are done: each makes a network, which costs more than a thousand requests. */
export async function untilIdle(url: string): Promise<void> {
  const client = new PostgresClient(url);
  await client.connect();
  try {
    const countJobs = async (): Promise<number> => {
      const { rows } = await client.query<{ waiting: number }>(
        'select count(*)::int as waiting from graphile_worker.jobs where run_at <= now()',
      );
      return rows[0]?.waiting ?? 0;
    };
    while ((await countJobs()) > 0) await sleep(200);
  } finally {
    await client.end();
  }
}

function newBuilds(apps: string, times: string): string {
  const source = apps.startsWith('(') ? `unnest(${apps})` : apps;
  return `insert into builds (id, app_id, status, cache_state, pipeline, commit, branch, created_by, created_at)
    select gen_random_uuid(), app, 'succeeded', 'Warm', 'local', repeat('a', 40), 'main', 'user', now() - random() * interval '300 days'
    from ${source} app, ${times}`;
}

/** For each app 10 releases, each with its deploy; the last is current. */
const newReleases = `
  with made as (
    insert into releases (id, app_id, version, status, kind, commit, image_url, processes, config, description, created_by)
    select gen_random_uuid(), app, version, 'succeeded', 'build', repeat('a', 40), 'slug://x', '{"web":"x"}', '', 'Deploy', 'user'
    from unnest($1::uuid[]) app, generate_series(1, 10) version returning id, app_id, version),
  deployed as (
    insert into deploys (id, app_id, release_id, status, weight) select gen_random_uuid(), app_id, id, 'live', 100 from made),
  counted as (insert into release_counters select app_id, 10 from made where version = 10)
  update apps set current_release_id = made.id from made where made.app_id = apps.id and made.version = 10`;
