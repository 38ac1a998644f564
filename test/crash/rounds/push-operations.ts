import { supersededMessage } from '#shared/core/builds/build-creation.ts';
import { movedMessage } from '#shared/core/repositories/ref-moves.ts';
import { type PushReport, packCommit, pushPack, type RefUpdate } from '#test/support/crash/push-client.ts';
import { type OperationContext, type PrepareOperation, readBuilds, readRefs } from './operation.ts';

export const main = 'refs/heads/main';
/** The answer to a push when the server does not know whether it took effect. */
const unknownReason = /^internal server error; refs may have changed, push again/;
/** The answer to a push of which nothing took effect. */
const undoneReason = 'unpacker error';
const mostAttempts = 100;

/** What the server answered for one ref, or for a push. 'unknown' also where it did not answer; 'undone': nothing took effect. */
export type PushAnswer = 'ok' | 'unknown' | 'undone' | { refused: string };

function readReport(report: PushReport, name: string, hostSurvives: boolean): PushAnswer {
  const reason = report?.get(name);
  if (reason === undefined) return 'unknown';
  if (reason === 'ok') return 'ok';
  if (hostSurvives && unknownReason.test(reason)) return 'unknown';
  return hostSurvives && reason === undoneReason ? 'undone' : { refused: reason };
}

/**
 * Pushes, and where the answer is to push again, reads the refs and pushes again what is missing, as a person does. With a control
 * plane that dies there is one attempt.
 * @returns the answer to each attempt
 */
export async function pushUntilAnswered(
  context: OperationContext,
  updates: readonly RefUpdate[],
  form: NonNullable<Parameters<typeof pushPack>[3]>,
) {
  const answers: PushAnswer[] = [];
  for (;;) {
    const report = await pushPack(context.controlPlane.socketPath, context.app.id, updates, form);
    const answer =
      updates.map(({ name }) => readReport(report, name, context.hostSurvives)).find((each) => each !== 'ok') ?? 'ok';
    answers.push(answer);
    if (answer === 'ok' || !context.hostSurvives || answers.length === mostAttempts) return answers;
    // Refused because an earlier attempt, which had no answer, has moved the ref meanwhile.
    if (typeof answer === 'object' && (answers.length === 1 || !answer.refused.endsWith('fetch first'))) return answers;
    const refs = await retryUntilAnswered(() => readRefs(context));
    if (updates.every(({ name, to }) => refs.get(name) === to)) return [...answers, 'ok' as const];
    if (typeof answer === 'object') return answers;
  }
}

/** The database may be away, and comes back. */
async function retryUntilAnswered<Value>(ask: () => Promise<Value>): Promise<Value> {
  for (;;) {
    const answer = await ask().catch(() => undefined);
    if (answer !== undefined) return answer;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** @param attempts pushes that may each have made a build; the newest build may have superseded the older ones */
export function findBuildProblems(builds: Awaited<ReturnType<typeof readBuilds>>, attempts: number): string[] {
  const problems: string[] = [];
  if (builds.length > attempts) problems.push(`${attempts} attempts of a push have ${builds.length} builds`);
  const wrong = builds.filter(({ status, error }, index) => {
    const isSuperseded = status === 'canceled' && error === supersededMessage && index < builds.length - 1;
    return status !== 'succeeded' && !isSuperseded;
  });
  return [...problems, ...wrong.map(({ status, error }) => `the build of a push ended as ${status}: ${error}`)];
}

/** How a build ended, or the deploy that it led to. */
function describeEnd(build: Awaited<ReturnType<typeof readBuilds>>[number]): string {
  const [status, error] = build.deploy_status === null ? [build.status, build.error] : [build.deploy_status, build.deploy_error];
  return `${status} ${error ?? ''}`.trim();
}

/** Pushes to the deployed branch; every fifth push has another history. */
export const pushCommit: PrepareOperation = async (context) => {
  const { app, random } = context;
  const before = app.tip;
  const { oid, pack } = packCommit(crypto.randomUUID(), random(5) === 0 ? undefined : before);
  let answers: readonly PushAnswer[] = [];
  return {
    requests: 1,
    async start() {
      answers = await pushUntilAnswered(context, [{ name: main, from: before, to: oid }], { pack });
      return answers[0] === 'ok' ? 0 : 1;
    },
    async check() {
      const builds = await readBuilds(context, oid);
      const tip = (await readRefs(context)).get(main);
      app.tip = tip;
      const last = answers.at(-1);
      const problems = findBuildProblems(builds, answers.filter((answer) => answer !== 'undone').length);
      if (typeof last === 'object') problems.push(`a push was refused: ${last.refused}`);
      if (last === 'ok' && builds.length === 0) problems.push('an acknowledged push is lost');
      const expected = builds.length === 0 ? before : oid;
      if (tip !== expected) problems.push(`main is at ${tip}, not at ${expected}`);
      return problems;
    },
  };
};

/** Pushes two commits to one branch at the same time, neither on top of the other: one must win. */
export const pushConcurrently: PrepareOperation = async (context) => {
  const { app } = context;
  const before = app.tip;
  const commits = [packCommit(crypto.randomUUID(), before), packCommit(crypto.randomUUID(), before)];
  const answers: (PushAnswer | undefined)[] = [];
  return {
    requests: 2,
    async start() {
      const pushes = commits.map(async ({ oid, pack }, index) => {
        const report = await pushPack(context.controlPlane.socketPath, app.id, [{ name: main, from: before, to: oid }], { pack });
        answers[index] = readReport(report, main, context.hostSurvives);
      });
      await Promise.all(pushes);
      return answers.filter((answer) => answer === 'unknown' || answer === 'undone').length;
    },
    async check() {
      const tip = (await readRefs(context)).get(main);
      app.tip = tip;
      const problems: string[] = [];
      const all: string[] = [];
      for (const [index, { oid }] of commits.entries()) {
        const builds = await readBuilds(context, oid);
        all.push(...builds.map(describeEnd));
        const answer = answers[index];
        if (builds.length > 1 || (answer === 'undone' && builds.length > 0))
          problems.push(`one of two pushes, answered ${JSON.stringify(answer)}, has ${builds.length} builds`);
        if (answer === 'ok' && tip !== oid) problems.push(`the winner of two pushes is lost: main is at ${tip}`);
        if (typeof answer === 'object' && !/(fetch first|superseded by a newer (push|release))$/.test(answer.refused))
          problems.push(`one of two pushes was refused: ${answer.refused}`);
        if (typeof answer === 'object' && tip === oid) problems.push(`main is at a push that was refused: ${answer.refused}`);
        if ((tip === oid) !== (builds[0]?.deploy_status === 'live')) problems.push('main and the deploy of a winner disagree');
      }
      if (answers.every((answer) => typeof answer === 'object')) problems.push('both of two pushes were refused');
      const expected = [
        'live',
        `failed ${movedMessage}`,
        `canceled ${supersededMessage}`,
        `superseded ${movedMessage}`,
        'superseded A newer release was waiting.',
        'superseded A newer release was deployed while this one was interrupted.',
      ];
      problems.push(...all.filter((end) => !expected.includes(end)).map((end) => `one of two pushes ended: ${end}`));
      if (all.length > 0 && all.filter((end) => end === 'live').length !== 1)
        problems.push(`of two pushes not one won: ${all.join(', ')}`);
      return problems;
    },
  };
};

/** Creates one tag, moves a second to another history, and deletes a third, with one push. */
export const pushTags: PrepareOperation = async (context) => {
  const before = await readRefs(context);
  const { oid, pack } = packCommit(crypto.randomUUID(), undefined);
  const oldest = [...before.keys()].find((name) => name.startsWith('refs/tags/made-'));
  const updates: RefUpdate[] = [
    { name: `refs/tags/made-${crypto.randomUUID()}`, from: undefined, to: oid },
    { name: 'refs/tags/moved', from: before.get('refs/tags/moved'), to: oid },
    ...(oldest === undefined ? [] : [{ name: oldest, from: before.get(oldest), to: undefined }]),
  ];
  let answers: readonly PushAnswer[] = [];
  return {
    requests: 1,
    async start() {
      answers = await pushUntilAnswered(context, updates, { pack });
      return answers[0] === 'ok' ? 0 : 1;
    },
    check: async () => findRefProblems(updates, await readRefs(context), answers.at(-1)),
  };
};

/** Pushes the deployed branch and a tag with `--atomic`: both move once the branch is built, or neither. */
export const pushAtomically: PrepareOperation = async (context) => {
  const { app } = context;
  const { oid, pack } = packCommit(crypto.randomUUID(), app.tip);
  const updates = [
    { name: main, from: app.tip, to: oid },
    { name: `refs/tags/with-${oid}`, from: undefined, to: oid },
  ];
  let answers: readonly PushAnswer[] = [];
  return {
    requests: 1,
    async start() {
      answers = await pushUntilAnswered(context, updates, { pack, atomic: true });
      return answers[0] === 'ok' ? 0 : 1;
    },
    async check() {
      const after = await readRefs(context);
      app.tip = after.get(main);
      const builds = await readBuilds(context, oid);
      const problems = findBuildProblems(builds, answers.filter((answer) => answer !== 'undone').length);
      if (builds.length > 0 !== (app.tip === oid)) problems.push('main and the build of an atomic push disagree');
      return [...problems, ...findRefProblems(updates, after, answers.at(-1))];
    },
  };
};

/** All refs of one push must have moved, or none of them. */
function findRefProblems(
  updates: readonly RefUpdate[],
  after: ReadonlyMap<string, string>,
  answer: PushAnswer | undefined,
): string[] {
  const moved = updates.filter(({ name, to }) => after.get(name) === to).length;
  const unmoved = updates.filter(({ name, from }) => after.get(name) === from).length;
  const problems: string[] = [];
  if (typeof answer === 'object') problems.push(`a push of several refs was refused: ${answer.refused}`);
  if (answer === 'ok' && moved < updates.length) problems.push(`of ${updates.length} acknowledged refs ${moved} moved`);
  if (moved < updates.length && unmoved < updates.length) problems.push(`of ${updates.length} refs of one push ${moved} moved`);
  return problems;
}
