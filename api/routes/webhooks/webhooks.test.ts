import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { createApi } from '#api/create-api.ts';
import { createServices } from '#deploy/control-plane.ts';
import { connectPostgres } from '#shared/database/postgres.ts';
import { createFakeIdempotencyKeys } from '#shared/idempotency/fake-idempotency.ts';
import type { AppId } from '#shared/ids.ts';
import { createFakeEventLimits } from '#shared/rate-limits/fake-event-limits.ts';
import { createFakeRateLimits } from '#shared/rate-limits/fake-rate-limits.ts';
import { apiRunsHere } from '#test/support/api/api-runtime.ts';
import { commit, createGitHost, type GitHostFixture, nothing, push, sign, webhookPath } from '#test/support/api/git-host.ts';
import { type Answer, createTestApi, type TestApi, type TestUser, testWebhookSecret } from '#test/support/api/test-api.ts';

let test: TestApi;
let ada: TestUser;
let host: GitHostFixture;
beforeAll(async () => {
  test = await createTestApi();
  host = createGitHost(test);
  ada = await test.signUp();
});
afterAll(() => test?.close());

describe('a delivery of a push', () => {
  it.each([
    'https://git.example.com/ada/form-1',
    'https://git.example.com/ada/form-2.git',
    'https://git.example.com/ada/form-3/',
    'https://git.example.com/ada/form-4.git/',
    'git@git.example.com:ada/form-5.git',
    'ssh://git@git.example.com/ada/form-6',
  ])('starts a build of the app that follows %s', async (url) => {
    const app = await host.createFollower(ada, url);
    const payload = host.pushTo(`ada/form-${/form-(\d)/.exec(url)?.[1]}`, 'main');
    const { status, body } = await host.deliver(payload);
    expect([status, body.data.outcome]).toEqual([200, 'started']);
    const [build, ...others] = await host.readBuilds(ada, app.id);
    expect([build?.commit, build?.branch, build?.status, others]).toEqual([payload.after, 'main', 'queued', []]);
  });

  it.each([
    [
      'gitea',
      { 'x-gitea-event': 'push', 'x-gitea-delivery': 'g-1' },
      (body: string) => ({ 'x-gitea-signature': sign(body).slice(7) }),
    ],
    [
      'forgejo',
      { 'x-forgejo-event': 'push', 'x-forgejo-delivery': 'f-1' },
      (body: string) => ({ 'x-forgejo-signature': sign(body).slice(7) }),
    ],
    ['gitlab', { 'x-gitlab-event': 'Push Hook', 'x-gitlab-event-uuid': 'l-1' }, () => ({ 'x-gitlab-token': testWebhookSecret })],
    ['generic', {}, (body: string) => ({ 'x-hub-signature-256': sign(body) })],
  ])('is accepted from %s', async (provider, headers, prove) => {
    const app = await host.createFollower(ada, `https://git.example.com/ada/of-${provider}.git`);
    const { repository, ...rest } = push(`ada/of-${provider}`);
    const { clone_url, ssh_url } = repository;
    const project = { git_http_url: clone_url, git_ssh_url: ssh_url, web_url: repository.html_url };
    const payload =
      provider === 'gitlab' ? { object_kind: 'push', event_name: 'push', ...rest, project } : { ...rest, repository };
    const body = JSON.stringify(payload);
    const answer = await test.ask('POST', webhookPath, {
      body,
      headers: { 'content-type': 'application/json', ...headers, ...prove(body) },
    });
    expect([answer.status, answer.body.data.outcome]).toEqual([200, 'started']);
    expect(await host.readBuilds(ada, app.id)).toHaveLength(1);
  });

  it('may be a form, also under /api/v1', async () => {
    const app = await host.createFollower(ada, 'https://git.example.com/ada/form-encoded');
    const body = new URLSearchParams({ payload: JSON.stringify(push('ada/form-encoded')) }).toString();
    const headers = { 'content-type': 'application/x-www-form-urlencoded', 'x-hub-signature-256': sign(body) };
    const answer = await test.ask('POST', `/api${webhookPath}`, { body, headers });
    expect([answer.status, answer.body.data.outcome]).toEqual([200, 'started']);
    expect(await host.readBuilds(ada, app.id)).toHaveLength(1);
  });

  it('may have 25 MiB in chunks; one byte more is refused', async () => {
    await host.createFollower(ada, 'https://git.example.com/ada/large');
    const bare = JSON.stringify({ ...push('ada/large'), padding: '' });
    const body = bare.replace('"padding":""', `"padding":"${'x'.repeat(25 * 1024 * 1024 - bare.length)}"`);
    const answer = await test.ask('POST', webhookPath, { body: inChunks(body), headers: { 'x-hub-signature-256': sign(body) } });
    expect([answer.status, answer.body.data.outcome]).toEqual([200, 'started']);
    const larger = `${body} `;
    for (const sent of [larger, inChunks(larger)]) {
      const refused = await test.ask('POST', webhookPath, { body: sent, headers: { 'x-hub-signature-256': sign(larger) } });
      expect([refused.status, refused.body.error.code]).toEqual([413, 'validation_failed']);
    }
  });

  it('to another branch builds a preview without the variables of the app, and its deletion removes the preview', async () => {
    const app = await host.createFollower(ada, 'https://git.example.com/ada/previewed', 'trunk');
    await test.ask('PATCH', `/v1/apps/${app.id}/config`, { as: ada, json: { SECRET: 'of production' } });
    const pushed = host.pushTo('ada/previewed', 'feature/x');
    expect((await host.deliver(pushed)).body.data.message).toContain('preview');
    expect(await host.readBuilds(ada, app.id)).toEqual([]);
    const preview = `${app.name}-feature-x`;
    expect((await host.readBuilds(ada, preview))[0]?.commit).toBe(pushed.after);
    expect((await test.ask('GET', `/v1/apps/${preview}/config`, { as: ada })).body.data).toEqual({});

    const gone = await host.deliver(host.pushTo('ada/previewed', 'feature/x', nothing));
    expect([gone.status, gone.body.data.outcome]).toEqual([200, 'removed']);
    expect((await test.ask('GET', `/v1/apps/${preview}/builds`, { as: ada })).status).toBe(404);
  });
});

describe('nothing is started', () => {
  it.each([
    ['a ping', { zen: 'Keep it logically awesome.', hook_id: 1 }, { 'x-github-event': 'ping' }],
    ['an issue', { action: 'opened' }, { 'x-github-event': 'issues' }],
    ['a tag', push('ada/quiet', { ref: 'refs/tags/v1' }), {}],
    ['the deletion of the branch that is deployed', push('ada/quiet', { before: commit(), after: nothing, deleted: true }), {}],
  ])('by %s, which is answered with 200', async (_what, payload, headers) => {
    host.repositories.set('ada/quiet', new Map());
    const app = await host.createFollower(ada, 'https://git.example.com/ada/quiet');
    const { status, body } = await host.deliver(payload, headers);
    expect([status, body.data.outcome]).toEqual([200, 'ignored']);
    expect(await host.readBuilds(ada, app.id)).toEqual([]);
  });

  it.each([
    ['another secret', { 'x-hub-signature-256': sign('{}', 'not the secret at all') }, 'webhook signature mismatch'],
    ['a signature of another body', { 'x-hub-signature-256': sign('another body') }, 'webhook signature mismatch'],
    ['a malformed signature', { 'x-hub-signature-256': 'sha256=zz' }, 'webhook signature mismatch'],
  ])('with %s: 401', async (_what, headers, message) => {
    const { status, body } = await host.deliver(push('ada/quiet'), headers);
    expect([status, body.error.code]).toEqual([401, 'unauthorized']);
    expect(body.error.message).toContain(message);
  });

  it('for a deleted app: 404, as for a repository that no app follows', async () => {
    const app = await host.createFollower(ada, 'https://git.example.com/ada/deleted');
    expect((await test.ask('DELETE', `/v1/apps/${app.id}`, { as: ada })).status).toBe(200);
    expect((await host.deliver(push('ada/deleted'))).status).toBe(404);
    const builds = await test.context.db
      .selectFrom('builds')
      .select('id')
      .where('app_id', '=', app.id as AppId)
      .execute();
    expect(builds).toEqual([]);
  });

  it.runIf(apiRunsHere)('without a signature: 401 before the body is read', async () => {
    const { status, body } = await test.ask('POST', webhookPath, {
      body: new ReadableStream({ pull: () => new Promise(() => undefined) }),
    });
    expect([status, body.error.message]).toEqual([401, expect.stringContaining('not signed')]);
  });

  it('for a repository that no app follows; the same delivery works once an app follows it', async () => {
    const payload = push('ada/late');
    const id = { 'x-github-delivery': crypto.randomUUID() };
    expect((await host.deliver(payload, id)).status).toBe(404);
    await host.createFollower(ada, 'https://git.example.com/ada/late');
    expect((await host.deliver(payload, id)).body.data.outcome).toBe('started');
  });

  it.each([
    ['no JSON', 'certainly not'],
    ['a list', []],
    ['a push without a repository', { ref: 'refs/heads/main' }],
    ['an invalid commit id', push('ada/quiet', { after: 'HEAD' })],
    ['a branch name that is an option', push('ada/quiet', { ref: 'refs/heads/-x' })],
  ])('by %s: 422', async (_what, payload) => {
    await host.createFollower(ada, 'https://git.example.com/ada/quiet');
    expect((await host.deliver(payload)).status).toBe(422);
  });
});

describe('a delivery that comes again', () => {
  it('is answered with 200 and starts nothing, also under another id or as of another provider', async () => {
    const app = await host.createFollower(ada, 'https://git.example.com/ada/again');
    const payload = host.pushTo('ada/again', 'main');
    const id = { 'x-github-delivery': crypto.randomUUID() };
    expect((await host.deliver(payload, id)).body.data.outcome).toBe('started');
    const body = JSON.stringify(payload);
    const same = await host.deliver(payload, id);
    const others = [
      await host.deliver(payload),
      await test.ask('POST', webhookPath, {
        body,
        headers: { 'x-gitea-event': 'push', 'x-gitea-signature': sign(body).slice(7) },
      }),
    ];
    expect([same.status, same.body.data.outcome]).toEqual([200, 'replayed']);
    for (const { status, body: answered } of others) expect([status, answered.data.outcome]).toEqual([200, 'ignored']);
    expect(await host.readBuilds(ada, app.id)).toHaveLength(1);
  });

  it('is recognised by its id only, whatever its content', async () => {
    const app = await host.createFollower(ada, 'https://git.example.com/ada/named');
    const named = { 'x-github-delivery': crypto.randomUUID() };
    expect((await host.deliver(push('ada/named'), named)).body.data.outcome).toBe('started');
    const again = await host.deliver(push('ada/named'), named);
    expect([again.status, again.body.data.outcome]).toEqual([200, 'replayed']);
    expect(await host.readBuilds(ada, app.id)).toHaveLength(1);
  });

  it('1,000 times at once over two instances on one database starts one build', async () => {
    const app = await host.createFollower(ada, 'https://git.example.com/ada/thousand');
    const second = await secondInstance();
    const body = JSON.stringify(push('ada/thousand'));
    const headers = { 'x-github-event': 'push', 'x-github-delivery': 'one', 'x-hub-signature-256': sign(body) };
    const answers = await Promise.all(
      Array.from({ length: 1000 }, async (_, i) =>
        (i % 2 === 0 ? test.api : second.api).request(webhookPath, { method: 'POST', body, headers }),
      ),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    const outcomes = await Promise.all(answers.map(async (each) => ((await each.json()) as Answer['body']).data.outcome));
    expect(outcomes.filter((outcome) => outcome === 'started')).toHaveLength(1);
    expect(await host.readBuilds(ada, app.id)).toHaveLength(1);
    await second.close();
  }, 180_000);
});

describe('a form', () => {
  it.each([
    ['gitea', 'x-gitea-signature', { 'x-gitea-event': 'push' }],
    ['gogs', 'x-gogs-signature', { 'x-gogs-event': 'push' }],
  ])('is accepted from %s, which signs the JSON in it', async (name, header, headers) => {
    const app = await host.createFollower(ada, `https://git.example.com/ada/form-of-${name}`);
    const payload = JSON.stringify(host.pushTo(`ada/form-of-${name}`, 'main'));
    const answer = await test.ask('POST', webhookPath, {
      body: new URLSearchParams({ payload }).toString(),
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        ...headers,
        [header]: sign(payload).slice(7),
      },
    });
    expect([answer.status, answer.body.data?.outcome]).toEqual([200, 'started']);
    expect(await host.readBuilds(ada, app.id)).toHaveLength(1);
  });
});

describe('an app of another tenant', () => {
  it('that follows the same repository gets builds of its own only', async () => {
    const bob = await test.signUp();
    const url = 'https://git.example.com/ada/shared';
    const [mine, theirs] = [await host.createFollower(ada, url), await host.createFollower(bob, url)];
    expect((await host.deliver(push('ada/shared'))).body.data.message).not.toMatch(new RegExp(`${theirs.name}|${mine.name}`));
    expect([await host.readBuilds(ada, mine.id), await host.readBuilds(bob, theirs.id)].map((builds) => builds.length)).toEqual([
      1, 1,
    ]);
  });

  it('is not reached by the webhook of another app or its secret', async () => {
    const bob = await test.signUp();
    const url = 'https://git.example.com/ada/own';
    const [mine, theirs] = [await host.createFollower(ada, url), await host.createFollower(bob, url)];
    const { webhook } = (await test.ask('GET', `/v1/apps/${mine.id}/git`, { as: ada })).body.data;
    expect(webhook?.url).toBe(`http://localhost:8080${webhookPath}?app=${mine.id}`);
    const secret = webhook?.secret ?? '';
    expect((await host.deliver(push('ada/own'), {}, secret, `?app=${mine.id}`)).body.data.outcome).toBe('started');
    expect([await host.readBuilds(ada, mine.id), await host.readBuilds(bob, theirs.id)].map((builds) => builds.length)).toEqual([
      1, 0,
    ]);
    expect((await host.deliver(push('ada/own'), {}, secret, `?app=${theirs.id}`)).status).toBe(401);
    expect((await host.deliver(push('ada/own'), {}, secret)).status).toBe(401);
    expect((await host.deliver(push('ada/own'), {}, testWebhookSecret, `?app=${mine.id}`)).status).toBe(401);
    expect((await host.deliver(push('ada/other'), {}, secret, `?app=${mine.id}`)).status).toBe(404);
    expect((await test.ask('GET', `/v1/apps/${mine.id}/git`, { as: bob })).status).toBe(404);
  });
});

it('answers that webhooks are disabled while the operator has set no secret', async () => {
  const { webhookSecret: _off, ...settings } = test.context.settings;
  const { webhooks } = createServices({ ...test.context, settings: { ...settings, webhookSecret: undefined } });
  await expect(webhooks.checkHeaders(() => undefined, undefined)).rejects.toThrow('PAAS_WEBHOOK_SECRET');
});

it('shows a deploy key for an SSH source, always the same, and none for other sources', async () => {
  const app = await host.createFollower(ada, 'git@git.example.com:ada/private.git');
  const read = async () => (await test.ask('GET', `/v1/apps/${app.id}/git`, { as: ada })).body.data.deploy_key;
  expect(await read()).toMatch(/^ssh-ed25519 [A-Za-z0-9+/]+=*$/);
  expect(await read()).toBe(await read());
  const kept = await test.context.db.selectFrom('source_keys').selectAll().where('app_id', '=', app.id).executeTakeFirstOrThrow();
  expect(kept.private_key).not.toContain('PRIVATE KEY');
  const plain = await test.createApp(ada);
  expect((await test.ask('GET', `/v1/apps/${plain.id as AppId}/git`, { as: ada })).body.data.deploy_key).toBeNull();
});

function inChunks(text: string): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(text);
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      controller.enqueue(bytes.subarray(at, (at += 1024 * 1024)));
      if (at >= bytes.length) controller.close();
    },
  });
}

/** Dependencies of another process on the same database. */
async function secondInstance() {
  const { db } = test.context;
  const { name } = await db.selectNoFrom((e) => e.fn<string>('current_database').as('name')).executeTakeFirstOrThrow();
  const url = new URL(inject('postgresUrl'));
  url.pathname = name;
  const connection = connectPostgres(url.href, () => undefined, 5);
  const context = { ...test.context, db: connection.db };
  const now = () => test.clock.now().getTime();
  const api = createApi({
    services: createServices(context),
    identity: context.identity,
    rateLimits: createFakeRateLimits(now),
    eventLimits: createFakeEventLimits(now),
    idempotencyKeys: createFakeIdempotencyKeys(now),
    allowedOrigins: [],
    issuer: 'http://localhost:8080/v1/auth',
    checkReady: async () => undefined,
    acceptsBuilds: async () => true,
    clientAddress: () => '2001:db8::2',
    clock: test.clock,
    log: context.log,
    metrics: test.metrics,
  });
  return { api, close: () => connection.close() };
}
