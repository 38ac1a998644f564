import { movedMessage } from '#shared/core/builds/build-attempt.ts';
import { supersededMessage } from '#shared/core/builds/build-creation.ts';
import { type PushReport, packCommit, pushPack, type RefUpdate } from '#test/support/crash/push-client.ts';
import { buildsOf, type MakeAct, refsOf, type Scene } from './act.ts';

export const main = 'refs/heads/main';
/** What a push is told when the server does not know whether it has happened: to push again. */
const unknownReason = /^internal server error; refs may have changed, push again/;
/** Told before anything was done. */
const undoneReason = 'unpacker error';
const mostAttempts = 100;

type Told = 'ok' | 'unknown' | 'undone' | { refused: string };

function readReport(report: PushReport, name: string, outages: boolean): Told {
  const reason = report?.get(name);
  if (reason === undefined) return 'unknown';
  if (reason === 'ok') return 'ok';
  if (outages && unknownReason.test(reason)) return 'unknown';
  return outages && reason === undoneReason ? 'undone' : { refused: reason };
}

/**
 * As a person does who is told to push again: look where the refs are, and push what is not there yet. With a control plane
 * that dies there is one attempt.
 */
async function pushUntilTold(scene: Scene, updates: readonly RefUpdate[], pack: Buffer, atomic = false) {
  const told: Told[] = [];
  for (;;) {
    const report = await pushPack(scene.host.socketPath, scene.app.id, updates, { pack, atomic });
    const verdicts = updates.map(({ name }) => readReport(report, name, scene.outages));
    const verdict = verdicts.find((each) => each !== 'ok') ?? 'ok';
    told.push(verdict);
    if (verdict === 'ok' || !scene.outages || told.length === mostAttempts) return told;
    // Refused where an attempt before, of which nothing was heard, has moved the ref just now.
    if (typeof verdict === 'object' && (told.length === 1 || !verdict.refused.endsWith('fetch first'))) return told;
    const refs = await whenItCanBeAsked(() => refsOf(scene));
    if (updates.every(({ name, to }) => refs.get(name) === to)) return [...told, 'ok' as const];
    if (typeof verdict === 'object') return told;
  }
}

/** The database is going to be back. */
async function whenItCanBeAsked<Value>(ask: () => Promise<Value>): Promise<Value> {
  for (;;) {
    const answer = await ask().catch(() => undefined);
    if (answer !== undefined) return answer;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** @param attempts that may each have made a build: of several, older ones may have been superseded by the newest */
function judgeBuilds(builds: Awaited<ReturnType<typeof buildsOf>>, attempts: number): string[] {
  const problems: string[] = [];
  if (builds.length > attempts) problems.push(`${attempts} attempts of a push have ${builds.length} builds`);
  const wrong = builds.filter(({ status, error }, index) => {
    const isSuperseded = status === 'canceled' && error === supersededMessage && index < builds.length - 1;
    return status !== 'succeeded' && !isSuperseded;
  });
  return [...problems, ...wrong.map(({ status, error }) => `the build of a push ended as ${status}: ${error}`)];
}

/** A push to the branch that is deployed, one in five of them of another history. */
export const push: MakeAct = async (scene) => {
  const { app, random } = scene;
  const before = app.tip;
  const { oid, pack } = packCommit(crypto.randomUUID(), random(5) === 0 ? undefined : before);
  let told: readonly Told[] = [];
  return {
    requests: 1,
    async begin() {
      told = await pushUntilTold(scene, [{ name: main, from: before, to: oid }], pack);
      return told[0] === 'ok' ? 0 : 1;
    },
    async check() {
      const builds = await buildsOf(scene, oid);
      const tip = (await refsOf(scene)).get(main);
      app.tip = tip;
      const last = told.at(-1);
      const problems = judgeBuilds(builds, told.filter((each) => each !== 'undone').length);
      if (typeof last === 'object') problems.push(`a push was refused: ${last.refused}`);
      if (last === 'ok' && builds.length === 0) problems.push('an acknowledged push is lost');
      const expected = builds.length === 0 ? before : oid;
      if (tip !== expected) problems.push(`main is at ${tip}, not at ${expected}`);
      return problems;
    },
  };
};

/** Two pushes to one branch at once, neither on top of the other: one wins. */
export const race: MakeAct = async (scene) => {
  const { app } = scene;
  const before = app.tip;
  const commits = [packCommit(crypto.randomUUID(), before), packCommit(crypto.randomUUID(), before)];
  const told: (Told | undefined)[] = [];
  return {
    requests: 2,
    async begin() {
      const pushes = commits.map(async ({ oid, pack }, index) => {
        const report = await pushPack(scene.host.socketPath, app.id, [{ name: main, from: before, to: oid }], { pack });
        told[index] = readReport(report, main, scene.outages);
      });
      await Promise.all(pushes);
      return told.filter((each) => each === 'unknown' || each === 'undone').length;
    },
    async check() {
      const tip = (await refsOf(scene)).get(main);
      app.tip = tip;
      const problems: string[] = [];
      const all: string[] = [];
      for (const [index, { oid }] of commits.entries()) {
        const builds = await buildsOf(scene, oid);
        all.push(...builds.map(({ status, error }) => `${status} ${error ?? ''}`.trim()));
        const verdict = told[index];
        if (builds.length > 1 || (verdict === 'undone' && builds.length > 0))
          problems.push(`one of two pushes, told ${JSON.stringify(verdict)}, has ${builds.length} builds`);
        if (verdict === 'ok' && tip !== oid) problems.push(`the winner of two pushes is lost: main is at ${tip}`);
        if (typeof verdict === 'object' && !/(fetch first|superseded by a newer push)$/.test(verdict.refused))
          problems.push(`one of two pushes was refused: ${verdict.refused}`);
        if (typeof verdict === 'object' && tip === oid) problems.push(`main is at a push that was refused: ${verdict.refused}`);
        if ((tip === oid) !== (builds[0]?.status === 'succeeded')) problems.push('main and the build of a winner disagree');
      }
      if (told.every((verdict) => typeof verdict === 'object')) problems.push('both of two pushes were refused');
      const fair = ['succeeded', `failed ${movedMessage}`, `canceled ${supersededMessage}`];
      problems.push(...all.filter((end) => !fair.includes(end)).map((end) => `the build of one of two pushes: ${end}`));
      if (all.length > 0 && all.filter((end) => end === 'succeeded').length !== 1)
        problems.push(`of two pushes not one won: ${all.join(', ')}`);
      return problems;
    },
  };
};

/** Makes one tag, moves another to another history, and deletes a third, with one push. */
export const refs: MakeAct = async (scene) => {
  const before = await refsOf(scene);
  const { oid, pack } = packCommit(crypto.randomUUID(), undefined);
  const oldest = [...before.keys()].find((name) => name.startsWith('refs/tags/made-'));
  const updates: RefUpdate[] = [
    { name: `refs/tags/made-${crypto.randomUUID()}`, from: undefined, to: oid },
    { name: 'refs/tags/moved', from: before.get('refs/tags/moved'), to: oid },
    ...(oldest === undefined ? [] : [{ name: oldest, from: before.get(oldest), to: undefined }]),
  ];
  let told: readonly Told[] = [];
  return {
    requests: 1,
    async begin() {
      told = await pushUntilTold(scene, updates, pack);
      return told[0] === 'ok' ? 0 : 1;
    },
    check: async () => judgeTogether(updates, await refsOf(scene), told.at(-1)),
  };
};

/** The deployed branch and a tag, all or none, once the branch is built. */
export const atomic: MakeAct = async (scene) => {
  const { app } = scene;
  const { oid, pack } = packCommit(crypto.randomUUID(), app.tip);
  const updates = [
    { name: main, from: app.tip, to: oid },
    { name: `refs/tags/with-${oid}`, from: undefined, to: oid },
  ];
  let told: readonly Told[] = [];
  return {
    requests: 1,
    async begin() {
      told = await pushUntilTold(scene, updates, pack, true);
      return told[0] === 'ok' ? 0 : 1;
    },
    async check() {
      const after = await refsOf(scene);
      app.tip = after.get(main);
      const builds = await buildsOf(scene, oid);
      const problems = judgeBuilds(builds, told.filter((each) => each !== 'undone').length);
      if (builds.length > 0 !== (app.tip === oid)) problems.push('main and the build of an atomic push disagree');
      return [...problems, ...judgeTogether(updates, after, told.at(-1))];
    },
  };
};

function judgeTogether(updates: readonly RefUpdate[], after: ReadonlyMap<string, string>, told: Told | undefined): string[] {
  const moved = updates.filter(({ name, to }) => after.get(name) === to).length;
  const unmoved = updates.filter(({ name, from }) => after.get(name) === from).length;
  const problems: string[] = [];
  if (typeof told === 'object') problems.push(`a push of several refs was refused: ${told.refused}`);
  if (told === 'ok' && moved < updates.length) problems.push(`of ${updates.length} acknowledged refs ${moved} moved`);
  if (moved < updates.length && unmoved < updates.length) problems.push(`of ${updates.length} refs of one push ${moved} moved`);
  return problems;
}
