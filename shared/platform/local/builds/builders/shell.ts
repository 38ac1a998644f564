import type { Builder } from '../plans/builder.ts';
import { emptyPlan } from '../plans/empty-plan.ts';
import type { SourceTree } from '../plans/source-tree.ts';

/** In the order in which they are looked for. */
const scripts = ['start.sh', 'app.sh', 'run.sh', 'main.sh'] as const;

/** An app whose start is a script that the host's own programs run. */
export const shellBuilder: Builder = {
  name: 'shell',
  looksFor: 'start.sh (shell script)',
  async detect(source) {
    const why = await findScript(source);
    return why === undefined ? undefined : { what: 'Shell script', why };
  },
  async plan(source, { env }) {
    const script = (await findScript(source, env)) ?? scripts[0];
    const shell = await findShell(source, script);
    return { ...emptyPlan, defaultProcesses: async () => ({ web: `${shell} ${script}` }) };
  },
};

/** @param env with the name of another script, as Railpack has it */
async function findScript(source: SourceTree, env: Readonly<Record<string, string>> = {}): Promise<string | undefined> {
  for (const script of [env['RAILPACK_SHELL_SCRIPT'], ...scripts])
    if (script !== undefined && /^[\w./-]+$/.test(script) && (await source.hasFile(script))) return script;
  return undefined;
}

/** The shell that the first line names; bash for one that may be missing. */
async function findShell(source: SourceTree, script: string): Promise<string> {
  const [line = ''] = ((await source.readText(script)) ?? '').split('\n', 1);
  const name = /^#!\s?\S{0,80}?(?:\/env )?(?:\S{0,80}\/)?(bash|sh|dash|zsh|ksh)\b/.exec(line)?.[1];
  return name === undefined || name === 'dash' || name === 'sh' ? 'sh' : 'bash';
}
