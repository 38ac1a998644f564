import { fork } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createServices } from '#deploy/control-plane.ts';
import { systemClock } from '#shared/clock.ts';
import type { Db } from '#shared/database/db.ts';
import { migrate } from '#shared/database/migrate.ts';
import { connectPostgres } from '#shared/database/postgres.ts';
import { createGitStorage } from '#shared/git/storage/create-git-storage.ts';
import { migrateJobs } from '#shared/jobs/graphile/migrate-jobs.ts';
import { createLog } from '#shared/log.ts';
import { createFakePlatform } from '#shared/platform/fake/fake-platform.ts';
import { coreWebhookSecret, createCoreContext } from '#test/support/core/core-context.ts';
import { onServer } from '#test/support/database/on-server.ts';

export interface ReplayOptions {
  /** Superuser's URL of a PostgreSQL. */
  serverUrl: string;
  /** API processes on one database. */
  processes: number;
  /** Each to an app of its own. */
  deliveries: number;
  /** Requests at the same time for each delivery. */
  times: number;
  /** Called after each delivery. */
  report?: (line: string) => void;
}

export interface ReplayOutcome {
  /** Number of requests by their answer, as `200 started`. */
  answers: Record<string, number>;
  /** Rows afterwards: builds, their jobs, and build starts as /metrics counts them. */
  builds: number;
  jobs: number;
  starts: number;
  /** Deliveries for which not exactly one request was answered `started`. */
  notStartedOnce: number;
}

const apiHostPath = fileURLToPath(new URL('../../support/crash/api-main.ts', import.meta.url));

/** Sends each delivery many times at once, spread over several processes of the API: git hosts repeat deliveries. */
export async function replayDeliveries(options: ReplayOptions): Promise<ReplayOutcome> {
  await using ends = new AsyncDisposableStack();
  const name = `paas_replay_${crypto.randomUUID().replaceAll('-', '')}`;
  await onServer(options.serverUrl, `create database ${name}`);
  ends.defer(() => onServer(options.serverUrl, `drop database ${name} with (force)`));
  const url = new URL(options.serverUrl);
  url.pathname = name;
  const directory = await mkdtemp(join(tmpdir(), 'paas-replay-'));
  ends.defer(() => rm(directory, { recursive: true, force: true }));
  const { db, pool, close } = connectPostgres(url.href, () => undefined, 2);
  ends.defer(close);
  const log = createLog('silent', () => undefined);
  await migrate(db);
  await migrateJobs(pool, log);
  const startProcess = async (): Promise<number> => {
    const controlPlane = fork(apiHostPath, [url.href, directory], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    const ended = once(controlPlane, 'exit');
    ends.defer(async () => {
      controlPlane.kill('SIGKILL');
      await ended;
    });
    const [{ port }] = (await once(controlPlane, 'message')) as [{ port: number }];
    return port;
  };
  const [gitUrls, ports] = await Promise.all([
    createApps(db, directory, options.deliveries),
    Promise.all(Array.from({ length: options.processes }, startProcess)),
  ]);
  const agent = new Agent({ keepAlive: true });
  ends.defer(() => agent.destroy());

  const answers: Record<string, number> = {};
  let notStartedOnce = 0;
  for (const [index, gitUrl] of gitUrls.entries()) {
    const delivery = makeDelivery(gitUrl);
    const sent = Array.from({ length: options.times }, (_, count) => deliver(agent, ports[count % ports.length] ?? 0, delivery));
    const received = await Promise.all(sent);
    for (const answer of received) answers[answer] = (answers[answer] ?? 0) + 1;
    if (received.filter((answer) => answer === '200 started').length !== 1) notStartedOnce += 1;
    options.report?.(`${index + 1} deliveries: ${JSON.stringify(answers)}`);
  }
  const count = async (query: string): Promise<number> => Number((await pool.query<{ count: unknown }>(query)).rows[0]?.count);
  return {
    answers,
    builds: await count('select count(*) from builds'),
    jobs: await count(`select count(*) from graphile_worker.jobs where task_identifier = 'build'`),
    starts: await count('select coalesce(sum(count), 0) as count from build_starts'),
    notStartedOnce,
  };
}

/** @returns the git URLs of the apps, which the deliveries name */
async function createApps(db: Db, directory: string, count: number): Promise<readonly string[]> {
  const log = createLog('silent', () => undefined);
  const platform = createFakePlatform({ clock: systemClock });
  const git = createGitStorage({ db, directory, log, threads: 1 });
  try {
    const context = await createCoreContext({ db, log, clock: systemClock, platform, git });
    const services = createServices(context);
    const { user, tenant } = await services.accounts.signUp({ email: 'ada@example.com', password: 'correct horse' });
    const owner = await services.accounts.resolvePrincipal({ userId: user.id, email: user.email, requestedTenantId: tenant.id });
    const urls = Array.from({ length: count }, () => `https://git.example.com/${crypto.randomUUID()}`);
    for (const gitUrl of urls) await services.apps.createApp(owner, { gitUrl });
    return urls;
  } finally {
    await git.close();
  }
}

interface Delivery {
  headers: Record<string, string>;
  body: string;
}

function makeDelivery(gitUrl: string): Delivery {
  const [before, after] = [0, 1].map(() => crypto.getRandomValues(new Uint8Array(20)).toHex());
  const body = JSON.stringify({ ref: 'refs/heads/main', before, after, repository: { clone_url: gitUrl } });
  return {
    body,
    headers: {
      'content-type': 'application/json',
      'x-github-event': 'push',
      'x-github-delivery': crypto.randomUUID(),
      'x-hub-signature-256': `sha256=${createHmac('sha256', coreWebhookSecret).update(body).digest('hex')}`,
    },
  };
}

/** @returns the status and the outcome, as '200 started', or the status and the error code */
async function deliver(agent: Agent, port: number, { headers, body }: Delivery): Promise<string> {
  const sent = request({ agent, host: '127.0.0.1', port, method: 'POST', path: '/v1/webhooks/githost', headers });
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += chunk as string;
  const { data, error } = JSON.parse(text) as { data?: { outcome: string }; error?: { code: string } };
  return `${response.statusCode} ${data?.outcome ?? error?.code}`;
}
