import { type ServerType, serve } from '@hono/node-server';
import { Hono } from 'hono';
import { streamSSE } from 'hono/streaming';
import type { components } from '#shared/api-client/openapi-types.ts';
import { secondsPerHour } from '#shared/durations.ts';

type Schemas = components['schemas'];

/** Lets a test observe a platform and cause faults that a healthy platform does not have. */
export interface SmallPlatform {
  readonly host: string;
  /** How many refresh tokens were used, and how many were used again. */
  readonly refreshes: { good: number; reused: number };
  /** Lifetime of new access tokens. */
  tokenSeconds: number;
  /** Lines of the only build. The stream breaks once after each line number in `breaksAfter`, and ends after the last line. */
  buildLog: { readonly lines: readonly string[]; readonly breaksAfter: Set<number>; readonly failed: boolean };
  /** Entries of the log of every app. The stream breaks once after each index in `breaksAfter`. */
  appLog: { readonly entries: readonly Schemas['LogEntry'][]; readonly breaksAfter: Set<number> };
  readonly config: Record<string, string>;
  readonly settings: Schemas['Settings'];
  /** Of every app, newest first. */
  readonly deploys: Schemas['Deploy'][];
  /** Commands that were run: each prints its input in upper case, and exits with 42. The stream of the command `lost` breaks. */
  readonly runs: SmallRun[];
  /** Makes all access tokens invalid. */
  expireTokens(): void;
  close(): Promise<void>;
}

/** A command that was run. */
export interface SmallRun {
  readonly request: { readonly command: string | readonly string[]; readonly input?: boolean; readonly terminal?: object };
  input: string;
}

/** The password of every account. */
export const smallPlatformPassword = 'correct horse battery';
const buildId = '4f6f1b7e-5d0c-4a43-9c8e-0d3a1f5b2c77';

/** Starts an HTTP server with a few routes of the API, typed by its schemas: account, apps, keys, config, settings, logs. */
export async function startSmallPlatform(): Promise<SmallPlatform> {
  const valid = new Map<string, number>();
  const refreshTokens = new Map<string, 'fresh' | 'spent'>();
  const apps: Schemas['App'][] = [];
  const keys: Schemas['SshKey'][] = [];
  const hono = new Hono();
  let counter = 0;

  function issueTokens(): Schemas['Tokens'] {
    counter += 1;
    const [access, refresh] = [`access-${counter}`, `refresh-${counter}`];
    valid.set(access, Date.now() + platform.tokenSeconds * 1000);
    refreshTokens.set(refresh, 'fresh');
    return { access_token: access, token_type: 'Bearer', expires_in: platform.tokenSeconds, refresh_token: refresh };
  }
  hono.get('/v1/healthz', (c) => c.json({ data: { status: 'ok', builds: 'accepted' } }));
  hono.post('/v1/signup', async (c) => {
    const { email, invitation_token } = await c.req.json<{ email: string; invitation_token?: string }>();
    const tenant = { id: 'k3v9x2ab', name: invitation_token === undefined ? 'ada' : 'engines' };
    return c.json({ data: { user: { id: 'u', email }, tenant, ...issueTokens() } }, 201);
  });
  hono.post('/v1/auth/login', async (c) => {
    const { password } = await c.req.json<{ password: string }>();
    if (password !== smallPlatformPassword) return refuse(401, 'unauthorized', 'The email or the password is wrong.');
    return c.json({ data: issueTokens() });
  });
  hono.post('/v1/auth/refresh', async (c) => {
    const { refresh_token: token } = await c.req.json<{ refresh_token: string }>();
    if (refreshTokens.get(token) !== 'fresh') {
      platform.refreshes.reused += 1;
      return refuse(401, 'unauthorized', 'The refresh token is not valid.');
    }
    refreshTokens.set(token, 'spent');
    platform.refreshes.good += 1;
    return c.json({ data: issueTokens() });
  });
  hono.post('/v1/auth/logout', (c) => c.body(null, 204));

  hono.use(async (c, next) => {
    const token = c.req.header('authorization')?.replace('Bearer ', '') ?? '';
    if ((valid.get(token) ?? 0) <= Date.now()) return refuse(401, 'unauthorized', 'The access token is not valid.');
    return next();
  });
  hono.get('/v1/user', (c) =>
    c.json({
      data: {
        id: 'u',
        email: 'ada@example.com',
        role: 'owner',
        tenant: { id: 'k3v9x2ab', name: 'ada' },
      } satisfies Schemas['User'],
    }),
  );
  hono.get('/v1/auth/ssh-keys', (c) => c.json({ data: keys, next_cursor: null }));
  hono.post('/v1/auth/ssh-keys', async (c) => {
    const { name, public_key: text } = await c.req.json<{ name: string; public_key: string }>();
    const blob = Buffer.from(text.split(' ')[1] ?? '', 'base64');
    const fingerprint = `SHA256:${Buffer.from(await crypto.subtle.digest('SHA-256', blob))
      .toString('base64')
      .replace(/=+$/, '')}`;
    if (keys.some((key) => key.fingerprint === fingerprint)) return refuse(409, 'conflict', 'This key is registered already.');
    const key = {
      id: crypto.randomUUID(),
      name,
      public_key: text,
      fingerprint,
      created_at: new Date().toISOString(),
      last_used_at: null,
    };
    keys.push(key);
    return c.json({ data: key satisfies Schemas['SshKey'] }, 201);
  });
  hono.get('/v1/apps', (c) => {
    // One app per page: a client that ignores the cursor shows one app.
    const from = Number(c.req.query('cursor') ?? 0);
    return c.json({ data: apps.slice(from, from + 1), next_cursor: from + 1 < apps.length ? String(from + 1) : null });
  });
  hono.post('/v1/apps', async (c) => {
    const { name = 'quiet-river-12', branch = 'main' } = await c.req.json<{ name?: string; branch?: string }>();
    if (apps.some((app) => app.name === name)) return refuse(409, 'conflict', `The name ${name} is taken. Choose another.`);
    const app = newApp(name, branch);
    apps.push(app);
    return c.json({ data: app }, 201);
  });
  hono.use('/v1/apps/:id/*', async (c, next) =>
    apps.some((app) => app.name === c.req.param('id')) ? next() : refuse(404, 'not_found', 'No such app.'),
  );
  hono.get('/v1/apps/:id', (c) => c.json({ data: apps.find((app) => app.name === c.req.param('id')) }));
  hono.delete('/v1/apps/:id', (c) => {
    const [app] = apps.splice(
      apps.findIndex(({ name }) => name === c.req.param('id')),
      1,
    );
    return c.json({ data: { ...app, status: 'deleted', restorable_until: '2026-04-01T00:00:00.000Z' } });
  });
  hono.get('/v1/apps/:id/config', (c) => c.json({ data: platform.config }));
  hono.patch('/v1/apps/:id/config', async (c) => {
    for (const [name, value] of Object.entries(await c.req.json<Record<string, string | null>>())) {
      if (value === null) delete platform.config[name];
      else platform.config[name] = value;
    }
    return c.json({ data: platform.config });
  });
  hono.get('/v1/apps/:id/settings', (c) => c.json({ data: platform.settings }));
  hono.patch('/v1/apps/:id/settings', async (c) => c.json({ data: Object.assign(platform.settings, await c.req.json()) }));
  hono.get('/v1/apps/:id/releases', (c) => c.json({ data: [], next_cursor: null }));
  hono.get('/v1/apps/:id/deploys', (c) => c.json({ data: platform.deploys, next_cursor: null }));
  hono.get('/v1/apps/:id/processes', (c) => c.json({ data: [], next_cursor: null }));
  const runs = new Map<string, ReturnType<typeof Promise.withResolvers<void>>>();
  hono.post('/v1/apps/:id/runs', async (c) => {
    const request = await c.req.json<SmallRun['request']>();
    const id = crypto.randomUUID();
    const run: SmallRun = { request, input: '' };
    platform.runs.push(run);
    const inputEnded = Promise.withResolvers<void>();
    runs.set(id, inputEnded);
    return streamSSE(c, async (stream) => {
      const write = (event: string, data: Schemas['RunEvent']) => stream.writeSSE({ event, data: JSON.stringify(data) });
      await write('run', { id, release_version: 1 });
      if (request.input === true) await inputEnded.promise;
      await write('output', { stream: 'stdout', base64: Buffer.from(run.input.toUpperCase()).toString('base64') });
      await write('output', { stream: 'stderr', base64: Buffer.from('warning\n').toString('base64') });
      if (request.command !== 'lost') await write('exit', { exit_code: 42 });
    });
  });
  let refusedInputs = 0;
  hono.post('/v1/apps/:id/runs/:run/input', async (c) => {
    // The first part comes too early.
    if (refusedInputs++ === 0) return refuse(409, 'conflict', 'The command has not read its input yet.');
    const { base64 = '', end = false } = await c.req.json<{ base64?: string; end?: boolean }>();
    const run = platform.runs.at(-1);
    if (run !== undefined) run.input += Buffer.from(base64, 'base64').toString();
    if (end) runs.get(c.req.param('run'))?.resolve();
    return c.body(null, 204);
  });
  const isWatched = { over: false };
  hono.get('/v1/apps/:id/builds/:bid', (c) => c.json({ data: theBuild(platform, isWatched.over) }));
  hono.get('/v1/apps/:id/builds/:bid/logs', (c) =>
    streamSSE(c, async (stream) => {
      const { lines, breaksAfter } = platform.buildLog;
      for (let seq = Number(c.req.header('last-event-id') ?? 0) + 1; seq <= lines.length; seq += 1) {
        const data = JSON.stringify({
          seq,
          ts: new Date().toISOString(),
          line: lines[seq - 1] ?? '',
        } satisfies Schemas['BuildLogLine']);
        await stream.writeSSE({ id: String(seq), data });
        if (breaksAfter.delete(seq)) return;
      }
      isWatched.over = true;
      await stream.writeSSE({ event: 'end', data: JSON.stringify(theBuild(platform, true)) });
    }),
  );
  hono.get('/v1/apps/:id/logs', (c) => {
    const seen = Number(c.req.header('last-event-id') ?? 0);
    const lines = Number(c.req.query('lines'));
    if (c.req.header('accept') !== 'text/event-stream') return c.json({ data: platform.appLog.entries.slice(-lines) });
    return streamSSE(c, async (stream) => {
      for (const [index, entry] of platform.appLog.entries.entries()) {
        if (index < seen) continue;
        await stream.writeSSE({ id: String(index + 1), data: JSON.stringify(entry) });
        if (platform.appLog.breaksAfter.delete(index)) return;
      }
      await new Promise<void>((resolve) => stream.onAbort(resolve));
    });
  });

  const server = await new Promise<ServerType>((resolve) => {
    const listening = serve({ fetch: hono.fetch, hostname: '127.0.0.1', port: 0 }, () => resolve(listening));
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The server has no port.');
  const platform: SmallPlatform = {
    host: `http://127.0.0.1:${address.port}`,
    refreshes: { good: 0, reused: 0 },
    tokenSeconds: secondsPerHour,
    buildLog: { lines: [], breaksAfter: new Set(), failed: false },
    appLog: { entries: [], breaksAfter: new Set() },
    config: {},
    deploys: [],
    runs: [],
    settings: {
      health_path: null,
      health_timeout_seconds: null,
      boot_timeout_seconds: null,
      session_affinity: null,
      directory: null,
      client_variables: null,
    },
    expireTokens: () => valid.clear(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        if ('closeAllConnections' in server) server.closeAllConnections();
      }),
  };
  return platform;
}

function newApp(name: string, branch: string): Schemas['App'] {
  const now = new Date().toISOString();
  const pushUrl = `ssh://git@127.0.0.1:2222/${name}.git`;
  return {
    id: crypto.randomUUID(),
    name,
    tenant_id: 'k3v9x2ab',
    git_url: pushUrl,
    push_url: pushUrl,
    branch,
    subdomain: `https://${name}.apps.localhost:8443`,
    web_url: `http://${name}.apps.localhost:8080`,
    status: 'active',
    current_release: null,
    preview: null,
    created_at: now,
    updated_at: now,
    deleted_at: null,
    restorable_until: null,
  };
}

function theBuild(platform: SmallPlatform, over: boolean): Schemas['Build'] {
  const { failed } = platform.buildLog;
  const now = new Date().toISOString();
  return {
    id: buildId,
    app_id: buildId,
    status: over ? (failed ? 'failed' : 'succeeded') : 'running',
    cache_state: 'Cold',
    pipeline: 'local',
    commit: '5478677c3a5a1f2c8f1c1fbb6b9d7c7a6e1d2f30',
    commit_title: null,
    commit_author: null,
    branch: 'main',
    source_url: null,
    source_image: null,
    source_sha256: null,
    image_url: null,
    error: over && failed ? 'npm ci failed with exit code 1.' : null,
    release_id: null,
    created_at: now,
    started_at: now,
    finished_at: over ? now : null,
  };
}

function refuse(status: number, code: Schemas['Error']['error']['code'], message: string): Response {
  const body: Schemas['Error'] = { error: { code, message, request_id: 'req_test', ts: new Date().toISOString() } };
  return Response.json(body, { status });
}
