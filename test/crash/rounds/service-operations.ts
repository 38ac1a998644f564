import { createHmac } from 'node:crypto';
import { coreWebhookSecret } from '#test/support/core/core-context.ts';
import { storeTip } from '#test/support/crash/stored-tips.ts';
import { answerTo, type OperationContext, type PrepareOperation, readBuilds, readRefs } from './operation.ts';
import { main } from './push-operations.ts';

/** Starts a build of the deployed commit. */
export const startBuild: PrepareOperation = async (context) => {
  const { controlPlane, app } = context;
  const { tip = '' } = app;
  const before = (await readBuilds(context, tip)).length;
  let answer: { id: string } | undefined;
  return {
    requests: 1,
    async start() {
      answer = await answerTo(controlPlane.call<{ id: string }>({ kind: 'start build', app: app.id }));
      return answer === undefined ? 1 : 0;
    },
    async check() {
      const builds = await readBuilds(context, tip);
      const more = builds.length - before;
      const failed = builds.filter(({ status }) => status !== 'succeeded');
      return [
        ...(more > 1 || (answer !== undefined && more !== 1) ? [`a build that was started has ${more} rows`] : []),
        ...failed.map(({ status, error }) => `a build ended as ${status}: ${error}`),
      ];
    },
  };
};

/** Changes a variable, which makes a release and a rollout. */
export const changeConfig: PrepareOperation = async (context) => {
  const { environment, controlPlane, app } = context;
  const countReleases = async (): Promise<number> => {
    const releases = environment.db.selectFrom('releases').select('id').where('app_id', '=', app.id).where('kind', '=', 'config');
    return (await releases.execute()).length;
  };
  const before = await countReleases();
  let answer: unknown;
  return {
    requests: 1,
    async start() {
      answer = await answerTo(controlPlane.call({ kind: 'change config', app: app.id, word: crypto.randomUUID() }));
      return answer === undefined ? 1 : 0;
    },
    async check() {
      const more = (await countReleases()) - before;
      return more > 1 || (answer !== undefined && more !== 1) ? [`a change of config made ${more} releases`] : [];
    },
  };
};

/** Creates a key-value store; of an existing one, rotates the password or deletes it. */
export const changeAddon: PrepareOperation = async (context) => {
  const { environment, controlPlane, app, random } = context;
  const read = () => environment.db.selectFrom('app_addons').selectAll().where('app_id', '=', app.id).executeTakeFirst();
  const before = await read();
  const kind = before === undefined ? 'create addon' : random(2) === 0 ? 'rotate password' : 'delete addon';
  let answer: unknown;
  return {
    requests: 1,
    async start() {
      answer = await answerTo(controlPlane.call({ kind, app: app.id }));
      return answer === undefined ? 1 : 0;
    },
    async check(facts) {
      const after = await read();
      const problems: string[] = [];
      if (answer !== undefined && (after === undefined) !== (kind === 'delete addon'))
        problems.push(`an add-on is ${after === undefined ? 'not there' : 'still there'} after ${kind}`);
      if (answer !== undefined && kind === 'rotate password' && after?.password === before?.password)
        problems.push('a password that was rotated is the old one');
      if (after?.removed_at !== null && after?.removed_at !== undefined) problems.push('the removal of an add-on never ends');
      if (after !== undefined && (after.status !== 'Ready' || after.credentials === null))
        problems.push(`an add-on stays ${after.status}`);
      if ((after === undefined) !== (facts.addons[app.id] === undefined)) problems.push('an add-on and its row disagree');
      if (facts.addons[app.id] === false) problems.push('a store has another password than its row');
      return problems;
    },
  };
};

/** Delivers a push of a git host, again and again until it is acknowledged, and now and then once more. */
export const deliverWebhook: PrepareOperation = async (context) => {
  const { controlPlane, app, random } = context;
  const [after] = app.upcoming;
  if (after === undefined) throw new Error('No commit is left to deliver: create the environment with more deliveries.');
  const isRepeated = app.deliveryId !== undefined;
  app.deliveryId ??= crypto.randomUUID();
  const cloneUrl = await gitUrlOf(context);
  await storeTip(context.environment.directory, cloneUrl, after);
  const known = (await readBuilds(context, after)).length;
  const body = JSON.stringify({
    ref: main,
    before: app.tip,
    after,
    repository: { clone_url: cloneUrl },
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
    async start() {
      answer = await answerTo(controlPlane.call<{ outcome: string }>({ kind: 'deliver', headers, body }));
      return answer === undefined ? 1 : 0;
    },
    async check() {
      const builds = await readBuilds(context, after);
      const problems: string[] = [];
      if (answer !== undefined && builds.length === 0) problems.push('an acknowledged delivery is lost');
      if (builds.length > 1) problems.push(`one delivery has ${builds.length} builds`);
      // One that was cut may have been recorded without an answer: the job then follows it.
      const expected = known > 0 ? ['replayed'] : isRepeated ? ['started', 'replayed'] : ['started'];
      if (answer !== undefined && !expected.includes(answer.outcome))
        problems.push(`a delivery was answered ${answer.outcome}, with ${known} builds before`);
      if (builds.some(({ status }) => status !== 'succeeded'))
        problems.push(`the build of a delivery ended as ${builds[0]?.status}: ${builds[0]?.error}`);
      if (builds.length === 1 && (await readRefs(context)).get(main) !== after) problems.push('main did not follow the git host');
      // A git host repeats deliveries that were not acknowledged, and sometimes those that were.
      if (builds.length > 0 && (answer !== undefined || known > 0) && random(5) > 0) {
        app.tip = after;
        app.upcoming.shift();
        app.deliveryId = undefined;
      }
      return problems;
    },
  };
};

async function gitUrlOf({ environment, app }: OperationContext): Promise<string> {
  const row = await environment.db.selectFrom('apps').select('git_url').where('id', '=', app.id).executeTakeFirstOrThrow();
  return row.git_url ?? '';
}
