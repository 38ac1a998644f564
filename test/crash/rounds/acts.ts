import { createHmac } from 'node:crypto';
import { type CrashHost, HostDied } from '#test/support/crash/crash-host-process.ts';
import type { HostFacts } from '#test/support/crash/host-calls.ts';
import { packCommit, pushPack } from '#test/support/crash/push-client.ts';
import { houseWebhookSecret } from '#test/support/house-context.ts';
import type { Area, World, WorldApp } from './world.ts';

/** Asked once everything has settled after the next start: what is wrong. */
export type Check = (facts: HostFacts) => Promise<readonly string[]>;

/** Does one thing to an app of its area, which the control plane may not survive. */
export type Act = (world: World, host: CrashHost, app: WorldApp) => Promise<Check>;

/** An answer, or undefined from one that died before it answered. What it refuses is a fault: nothing here is refusable. */
async function answered<Value>(call: Promise<Value>): Promise<Value | undefined> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof HostDied) return undefined;
    throw error;
  }
}

function buildsOf(world: World, app: WorldApp, commit: string) {
  return world.db.selectFrom('builds').selectAll().where('app_id', '=', app.id).where('commit', '=', commit).execute();
}

async function mainOf(world: World, app: WorldApp): Promise<string | undefined> {
  const row = await world.db
    .selectFrom('git_refs')
    .select('oid')
    .where('repository_id', '=', app.id as string as never)
    .where('name', '=', 'refs/heads/main')
    .executeTakeFirst();
  return row?.oid;
}

async function countReleases(world: World, app: WorldApp, kind?: 'config' | 'build'): Promise<number> {
  const all = world.db.selectFrom('releases').select('id').where('app_id', '=', app.id);
  return (await (kind === undefined ? all : all.where('kind', '=', kind)).execute()).length;
}

const push: Act = async (world, host, app) => {
  const before = app.tip;
  const { oid, pack } = packCommit(crypto.randomUUID(), before);
  const verdict = await pushPack(host.socketPath, app.id, { name: 'refs/heads/main', from: before, to: oid }, pack);
  return async () => {
    const builds = await buildsOf(world, app, oid);
    const main = await mainOf(world, app);
    app.tip = main;
    const problems: string[] = [];
    if (verdict?.accepted === false) problems.push(`a push was refused: ${verdict.reason}`);
    if (verdict?.accepted === true && builds.length === 0) problems.push('an acknowledged push is lost');
    if (builds.length > 1) problems.push(`one push has ${builds.length} builds`);
    if (builds.some(({ status }) => status !== 'succeeded'))
      problems.push(`the build of a push ended as ${builds[0]?.status}: ${builds[0]?.error}`);
    const expected = builds.length === 0 ? before : oid;
    if (main !== expected) problems.push(`main is at ${main}, not at ${expected}`);
    return problems;
  };
};

const build: Act = async (world, host, app) => {
  const { tip = '' } = app;
  const before = (await buildsOf(world, app, tip)).length;
  const answer = await answered(host.call<{ id: string }>({ kind: 'start build', app: app.id }));
  return async () => {
    const builds = await buildsOf(world, app, tip);
    const more = builds.length - before;
    return [
      ...(more > 1 || (answer !== undefined && more !== 1) ? [`a build that was started has ${more} rows`] : []),
      ...builds.filter(({ status }) => status !== 'succeeded').map(({ status, error }) => `a build ended as ${status}: ${error}`),
    ];
  };
};

const rollout: Act = async (world, host, app) => {
  const before = await countReleases(world, app, 'config');
  const answer = await answered(host.call({ kind: 'change config', app: app.id, word: crypto.randomUUID() }));
  return async () => {
    const more = (await countReleases(world, app, 'config')) - before;
    return more > 1 || (answer !== undefined && more !== 1) ? [`a change of config made ${more} releases`] : [];
  };
};

const addon: Act = async (world, host, app) => {
  const read = () => world.db.selectFrom('app_addons').selectAll().where('app_id', '=', app.id).executeTakeFirst();
  const before = await read();
  const kind = before === undefined ? 'create addon' : Math.random() < 0.5 ? 'rotate password' : 'delete addon';
  const answer = await answered(host.call({ kind, app: app.id }));
  return async (facts) => {
    const after = await read();
    const problems: string[] = [];
    if (answer !== undefined && (after === undefined) !== (kind === 'delete addon'))
      problems.push(`an add-on is ${after === undefined ? 'not there' : 'still there'} after ${kind}`);
    if (answer !== undefined && kind === 'rotate password' && after?.password === before?.password)
      problems.push('a password that was rotated is the old one');
    if (after?.removed_at !== null && after?.removed_at !== undefined) problems.push('an add-on is being removed for ever');
    if (after !== undefined && (after.status !== 'Ready' || after.credentials === null))
      problems.push(`an add-on stays ${after.status}`);
    if ((after === undefined) !== (facts.addons[app.id] === undefined)) problems.push('an add-on and its row disagree');
    if (facts.addons[app.id] === false) problems.push('a store has another password than its row');
    return problems;
  };
};

const webhook: Act = async (world, host, app) => {
  const [after] = app.upcoming;
  if (after === undefined) return async () => [];
  app.deliveryId ??= crypto.randomUUID();
  const known = (await buildsOf(world, app, after)).length;
  const body = JSON.stringify({
    ref: 'refs/heads/main',
    before: app.tip,
    after,
    repository: { clone_url: await gitUrlOf(world, app) },
  });
  const headers = {
    'x-github-event': 'push',
    'x-github-delivery': app.deliveryId,
    'x-hub-signature-256': `sha256=${createHmac('sha256', houseWebhookSecret).update(body).digest('hex')}`,
    'content-type': 'application/json',
  };
  const answer = await answered(host.call<{ outcome: string }>({ kind: 'deliver', headers, body }));
  return async () => {
    const builds = await buildsOf(world, app, after);
    const problems: string[] = [];
    if (answer !== undefined && builds.length === 0) problems.push('an acknowledged delivery is lost');
    if (builds.length > 1) problems.push(`one delivery has ${builds.length} builds`);
    if (answer !== undefined && answer.outcome !== (known === 0 ? 'started' : 'replayed'))
      problems.push(`a delivery was answered ${answer.outcome}, with ${known} builds before`);
    if (builds.some(({ status }) => status !== 'succeeded'))
      problems.push(`the build of a delivery ended as ${builds[0]?.status}: ${builds[0]?.error}`);
    if (builds.length === 1 && (await mainOf(world, app)) !== after) problems.push('main did not follow the git host');
    // A git host repeats what was not acknowledged, and sometimes what was.
    if (builds.length > 0 && (answer !== undefined || known > 0) && Math.random() < 0.8) {
      app.tip = after;
      app.upcoming.shift();
      app.deliveryId = undefined;
    }
    return problems;
  };
};

async function gitUrlOf(world: World, app: WorldApp): Promise<string | null> {
  const row = await world.db.selectFrom('apps').select('git_url').where('id', '=', app.id).executeTakeFirstOrThrow();
  return row.git_url;
}

export const acts: Readonly<Record<Area, Act>> = { push, build, rollout, 'add-on': addon, webhook };
