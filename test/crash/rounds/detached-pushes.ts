import { packCommits } from '#test/support/crash/push-client.ts';
import { type PrepareOperation, readBuilds, readRefs } from './operation.ts';
import { findBuildProblems, main, type PushAnswer, pushUntilAnswered } from './push-operations.ts';

/** Pushes two commits with `-o detach`, one after the other: the ref moves before the build, and the app ends at the newest. */
export const pushDetached: PrepareOperation = async (context) => {
  const { app } = context;
  const before = app.tip;
  const { oids, pack } = packCommits([crypto.randomUUID(), crypto.randomUUID()], before);
  const answers: (readonly PushAnswer[])[] = [];
  return {
    requests: oids.length,
    async start() {
      for (const [index, to] of oids.entries()) {
        const update = { name: main, from: oids[index - 1] ?? before, to };
        answers[index] = await pushUntilAnswered(context, [update], { pack, options: ['detach'] });
        if (answers[index]?.at(-1) !== 'ok') break;
      }
      return oids.length - answers.filter((each) => each[0] === 'ok').length;
    },
    async check() {
      const tip = (await readRefs(context)).get(main);
      app.tip = tip;
      const builds = await Promise.all(oids.map((oid) => readBuilds(context, oid)));
      const problems = findBuildProblems(builds.flat(), answers.flat().length);
      for (const [index, oid] of oids.entries()) {
        const last = answers[index]?.at(-1);
        if (typeof last === 'object') problems.push(`a detached push was refused: ${last.refused}`);
        if (last === 'ok' && builds[index]?.length === 0) problems.push('an acknowledged detached push has no build');
        if (last === 'ok' && oid === oids.at(-1) && tip !== oid) problems.push(`a detached push is lost: main is at ${tip}`);
      }
      if (tip !== before && !oids.includes(tip ?? '')) problems.push(`main is at ${tip}, which nobody pushed`);
      return problems;
    },
  };
};
