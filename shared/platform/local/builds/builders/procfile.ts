import type { Builder } from '../plans/builder.ts';
import { emptyPlan } from '../plans/empty-plan.ts';

/** Whatever the host's own programs can run: scripts, committed binaries. */
export const procfileBuilder: Builder = {
  name: 'procfile',
  looksFor: 'Procfile (anything else)',
  async detect(source) {
    return (await source.hasFile('Procfile')) ? { what: 'Plain app', why: 'Procfile' } : undefined;
  },
  async plan() {
    return { ...emptyPlan, processHint: 'The Procfile declares no process type. Add a line as: web: ./server' };
  },
};
