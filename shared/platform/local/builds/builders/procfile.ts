import { BuildFailure } from '#shared/platform/build-failure.ts';
import { splitRoughly } from '#shared/platform/command-words.ts';
import type { Builder } from '../plans/builder.ts';
import { emptyPlan } from '../plans/empty-plan.ts';
import type { SourceTree } from '../plans/source-tree.ts';
import { findUnsupported } from './undetected.ts';

/** Whatever the host's own programs can run: scripts, committed binaries. */
export const procfileBuilder: Builder = {
  name: 'procfile',
  looksFor: 'Procfile (anything else)',
  async detect(source) {
    return (await source.hasFile('Procfile')) ? { what: 'Plain app', why: 'Procfile' } : undefined;
  },
  async plan(source, { ownCommands, buildsItself }) {
    if (!buildsItself) await refuseWithoutBuilder(source, ownCommands);
    return { ...emptyPlan, processHint: 'The Procfile declares no process type. Add a line as: web: ./server' };
  },
};

/** The commands of an app in a language without a builder name what its build would leave, and would fail without a reason. */
async function refuseWithoutBuilder(source: SourceTree, commands: readonly string[]): Promise<void> {
  const language = await findUnsupported(source);
  if (language === undefined) return;
  const words = commands.flatMap(splitRoughly);
  const paths = words.map((word) => word.replace(/^\/app\//, '')).filter((word) => /^[\w.@+-]+\/[\w./@+-]+$/.test(word));
  const committed = await Promise.all(paths.map((path) => source.hasFile(path)));
  if (paths.length === 0 || committed.includes(true)) return;
  throw new BuildFailure(
    `This platform has no builder for ${language}, so there is no ${paths[0]}, which the app starts. ` +
      'Add a Dockerfile that builds it, or commit the program that you have built for Linux.',
  );
}
