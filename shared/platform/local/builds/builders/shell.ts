import type { Builder } from '../plans/builder.ts';
import { emptyPlan } from '../plans/empty-plan.ts';
import type { SourceTree } from '../plans/source-tree.ts';

const script = 'start.sh';

/** An app whose start is a script that the host's own programs run. */
export const shellBuilder: Builder = {
  name: 'shell',
  looksFor: 'start.sh (shell script)',
  async detect(source) {
    return (await source.hasFile(script)) ? { what: 'Shell script', why: script } : undefined;
  },
  async plan(source) {
    const shell = await findShell(source);
    return { ...emptyPlan, defaultProcesses: async () => ({ web: `${shell} ${script}` }) };
  },
};

/** The shell that the first line names; bash for one that may be missing. */
async function findShell(source: SourceTree): Promise<string> {
  const [line = ''] = ((await source.readText(script)) ?? '').split('\n', 1);
  const name = /^#!\s?\S{0,80}?(?:\/env )?(?:\S{0,80}\/)?(bash|sh|dash|zsh|ksh)\b/.exec(line)?.[1];
  return name === undefined || name === 'dash' || name === 'sh' ? 'sh' : 'bash';
}
