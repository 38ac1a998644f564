import { packCommit } from '#test/support/crash/push-client.ts';
import { type PrepareOperation, readRefs } from './operation.ts';
import { type PushAnswer, pushUntilAnswered } from './push-operations.ts';

const branch = 'topic';
const ref = `refs/heads/${branch}`;

/** Pushes another branch, which makes a preview or updates it; of an existing one, now and then deletes the branch. */
export const changePreview: PrepareOperation = async (context) => {
  const { environment, app, random } = context;
  const readPreview = () =>
    environment.db
      .selectFrom('apps')
      .leftJoin('releases', 'releases.id', 'apps.current_release_id')
      .select(['apps.id', 'releases.commit'])
      .where('apps.parent_app_id', '=', app.id)
      .where('apps.preview_branch', '=', branch)
      .where('apps.deleted_at', 'is', null)
      .executeTakeFirst();
  const before = (await readRefs(context)).get(ref);
  const removes = before !== undefined && random(2) === 0;
  const { oid, pack } = packCommit(crypto.randomUUID(), before ?? app.tip);
  const preview = await readPreview();
  const { count } = await environment.db
    .selectFrom('builds')
    .select((builds) => builds.fn.countAll<number>().as('count'))
    .where('app_id', '=', preview?.id ?? null)
    .executeTakeFirstOrThrow();
  const to = removes ? undefined : oid;
  let answers: readonly PushAnswer[] = [];
  return {
    requests: 1,
    async start() {
      answers = await pushUntilAnswered(context, [{ name: ref, from: before, to }], removes ? {} : { pack });
      return answers[0] === 'ok' ? 0 : 1;
    },
    async check() {
      const after = (await readRefs(context)).get(ref);
      const current = await readPreview();
      const last = answers.at(-1);
      const problems: string[] = [];
      if (typeof last === 'object') problems.push(`a push of a preview was refused: ${last.refused}`);
      if (last === 'ok' && after !== to) problems.push(`an acknowledged push of a preview is lost: it is at ${after}`);
      if (after !== before && after !== to) problems.push(`a branch is at ${after}, which nobody pushed`);
      if (after !== undefined && current?.commit !== after) problems.push(`the preview of ${after} runs ${current?.commit}`);
      if (after === undefined && current !== undefined) problems.push('a preview is left whose branch is gone');
      if (before !== undefined && after === undefined) environment.purgedBuilds += Number(count);
      return problems;
    },
  };
};
