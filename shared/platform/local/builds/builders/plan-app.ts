import { dirname } from 'node:path';
import { besideDebian } from '../../toolchains/beside-debian.ts';
import type { Toolchains } from '../../toolchains/toolchains.ts';
import type { BuildContext, BuildPlan } from '../plans/builder.ts';
import { addTools, type CombinedPlan, combinePlans } from '../plans/combine-plans.ts';
import { applyOverrides, type Overrides } from '../plans/overrides.ts';
import type { SourceTree } from '../plans/source-tree.ts';
import { readVersionPins } from '../plans/version-pins.ts';
import type { Choice } from './choose-builders.ts';
import { findPinnedTools } from './pinned-tools.ts';

/** How an app of one or several languages is built. */
export interface AppPlan {
  /** Of the language that starts the app. */
  readonly main: BuildPlan;
  /** All, in the order in which they run. */
  readonly running: readonly BuildPlan[];
  readonly combined: CombinedPlan;
  readonly notes: readonly string[];
}

/**
 * Installs the tools that the app asks for, where they are missing, which can take minutes.
 * @throws BuildFailure when it can be told before running anything that this cannot work
 */
export async function planApp(
  source: SourceTree,
  { main, before, after = [] }: Choice,
  overrides: Overrides,
  given: BuildContext,
): Promise<AppPlan> {
  const toolchains = main.builder.replacesSystem === true ? besideDebian(given.toolchains) : given.toolchains;
  const context = { ...given, toolchains };
  const others: BuildPlan[] = [];
  for (const { builder } of [...before, ...after]) others.push(await builder.plan(source, context));
  const plan = applyOverrides(await main.builder.plan(source, context), overrides);
  const planned = combinePlans([...others, plan]);
  const present = [...before, ...after, main].map(({ builder }) => builder.name);
  const stored = planned.toolchain.flatMap((mount) => (mount.kind === 'stored' ? [mount.name] : []));
  const pins = await readVersionPins(source, context.env);
  const tools = await findPinnedTools(toolchains, pins, new Set([...present, ...stored]));
  const combined = addTools(planned, tools);
  const system =
    overrides.systemPackages.length === 0 ? undefined : await addSystem(combined, overrides.systemPackages, toolchains);
  return {
    main: plan,
    running: [...others.slice(0, before.length), plan, ...others.slice(before.length)],
    combined: system?.combined ?? combined,
    notes: [...[...others, plan, tools].flatMap(({ notes }) => notes), ...(system === undefined ? [] : [system.note])],
  };
}

/** Directories of programs that a system of Debian has itself. */
const systemDirectories = ['/usr/bin', '/usr/sbin', '/usr/games', '/usr/local/bin', '/usr/local/sbin'];

/** With packages of Debian. Tools of the host that have directories of their own below /usr are shown in the system. */
async function addSystem(
  combined: CombinedPlan,
  packages: readonly string[],
  toolchains: Toolchains,
): Promise<{ combined: CombinedPlan; note: string }> {
  const names = [...new Set(packages)].sort();
  const { codename, mounts } = await toolchains.findSystem(names, combined.toolchain);
  const prefixes = combined.path
    .filter((path) => path.startsWith('/usr/') && !systemDirectories.includes(path))
    .map((path) => dirname(path));
  const ofDebian = combined.toolchain.some((mount) => mount.kind === 'stored' && mount.name.startsWith('debian-'));
  const shown = ofDebian ? [] : prefixes.map((path) => ({ kind: 'host', path }) as const);
  return {
    combined: { ...combined, path: [...combined.path, '/usr/games'], toolchain: [...shown, ...mounts] },
    note: `Installing packages of Debian (${codename}): ${names.join(', ')}`,
  };
}
