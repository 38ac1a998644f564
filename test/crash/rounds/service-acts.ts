import { createHmac } from 'node:crypto';
import { coreWebhookSecret } from '#test/support/core/core-context.ts';
import { answered, buildsOf, type MakeAct, refsOf, type Scene } from './act.ts';
import { main } from './push-acts.ts';

export const build: MakeAct = async (scene) => {
  const { host, app } = scene;
  const { tip = '' } = app;
  const before = (await buildsOf(scene, tip)).length;
  let answer: { id: string } | undefined;
  return {
    requests: 1,
    async begin() {
      answer = await answered(host.call<{ id: string }>({ kind: 'start build', app: app.id }));
      return answer === undefined ? 1 : 0;
    },
    async check() {
      const builds = await buildsOf(scene, tip);
      const more = builds.length - before;
      const failed = builds.filter(({ status }) => status !== 'succeeded');
      return [
        ...(more > 1 || (answer !== undefined && more !== 1) ? [`a build that was started has ${more} rows`] : []),
        ...failed.map(({ status, error }) => `a build ended as ${status}: ${error}`),
      ];
    },
  };
};

export const rollout: MakeAct = async (scene) => {
  const { world, host, app } = scene;
  const countReleases = async (): Promise<number> => {
    const releases = world.db.selectFrom('releases').select('id').where('app_id', '=', app.id).where('kind', '=', 'config');
    return (await releases.execute()).length;
  };
  const before = await countReleases();
  let answer: unknown;
  return {
    requests: 1,
    async begin() {
      answer = await answered(host.call({ kind: 'change config', app: app.id, word: crypto.randomUUID() }));
      return answer === undefined ? 1 : 0;
    },
    async check() {
      const more = (await countReleases()) - before;
      return more > 1 || (answer !== undefined && more !== 1) ? [`a change of config made ${more} releases`] : [];
    },
  };
};

export const addon: MakeAct = async (scene) => {
  const { world, host, app, random } = scene;
  const read = () => world.db.selectFrom('app_addons').selectAll().where('app_id', '=', app.id).executeTakeFirst();
  const before = await read();
  const kind = before === undefined ? 'create addon' : random(2) === 0 ? 'rotate password' : 'delete addon';
  let answer: unknown;
  return {
    requests: 1,
    async begin() {
      answer = await answered(host.call({ kind, app: app.id }));
      return answer === undefined ? 1 : 0;
    },
    async check(facts) {
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
    },
  };
};

export const webhook: MakeAct = async (scene) => {
  const { host, app, random } = scene;
  const [after] = app.upcoming;
  if (after === undefined) throw new Error('The git host has nothing more to tell: make the world with more deliveries.');
  app.deliveryId ??= crypto.randomUUID();
  const known = (await buildsOf(scene, after)).length;
  const body = JSON.stringify({
    ref: main,
    before: app.tip,
    after,
    repository: { clone_url: await gitUrlOf(scene) },
  });
  const headers = {
    'x-github-event': 'push',
    'x-github-delivery': app.deliveryId,
    'x-hub-signature-256': `sha256=${createHmac('sha256', coreWebhookSecret).update(body).digest('hex')}`,
    'content-type': 'application/json',
  };
  let answer: { outcome: string } | undefined;
  return {
    requests: 1,
    async begin() {
      answer = await answered(host.call<{ outcome: string }>({ kind: 'deliver', headers, body }));
      return answer === undefined ? 1 : 0;
    },
    async check() {
      const builds = await buildsOf(scene, after);
      const problems: string[] = [];
      if (answer !== undefined && builds.length === 0) problems.push('an acknowledged delivery is lost');
      if (builds.length > 1) problems.push(`one delivery has ${builds.length} builds`);
      if (answer !== undefined && answer.outcome !== (known === 0 ? 'started' : 'replayed'))
        problems.push(`a delivery was answered ${answer.outcome}, with ${known} builds before`);
      if (builds.some(({ status }) => status !== 'succeeded'))
        problems.push(`the build of a delivery ended as ${builds[0]?.status}: ${builds[0]?.error}`);
      if (builds.length === 1 && (await refsOf(scene)).get(main) !== after) problems.push('main did not follow the git host');
      // A git host repeats what was not acknowledged, and sometimes what was.
      if (builds.length > 0 && (answer !== undefined || known > 0) && random(5) > 0) {
        app.tip = after;
        app.upcoming.shift();
        app.deliveryId = undefined;
      }
      return problems;
    },
  };
};

async function gitUrlOf({ world, app }: Scene): Promise<string | null> {
  const row = await world.db.selectFrom('apps').select('git_url').where('id', '=', app.id).executeTakeFirstOrThrow();
  return row.git_url;
}
