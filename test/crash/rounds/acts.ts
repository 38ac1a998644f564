import type { MakeAct } from './act.ts';
import { atomic, push, race, refs } from './push-acts.ts';
import { addon, build, rollout, webhook } from './service-acts.ts';
import type { Area } from './world.ts';

export const acts: Readonly<Record<Area, MakeAct>> = {
  push,
  race,
  refs,
  atomic,
  build,
  rollout,
  'add-on': addon,
  webhook,
};
