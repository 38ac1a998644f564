import { dirname } from 'node:path';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import { besideDebian } from '../../toolchains/beside-debian.ts';
import type { System, Toolchains } from '../../toolchains/toolchains.ts';
import type { BuildPlan } from '../plans/build-plan.ts';
import type { BuildContext } from '../plans/builder.ts';
import { addTools, type CombinedPlan, combinePlans } from '../plans/combine-plans.ts';
import { applyOverrides, type Overrides } from '../plans/overrides.ts';
import type { SourceTree } from '../plans/source-tree.ts';
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
  const tools = await findPinnedTools(toolchains, context.pins, new Set([...present, ...stored]));
  const combined = addTools(planned, tools);
  const implied = [...others, plan].flatMap(({ systemPackages = [] }) => systemPackages);
  const system = await addSystem(combined, { asked: overrides.systemPackages, implied }, toolchains);
  return {
    main: plan,
    running: [...others.slice(0, before.length), plan, ...others.slice(before.length)],
    combined: system.combined,
    notes: [...[...others, plan, tools].flatMap(({ notes }) => notes), ...system.notes],
  };
}

/** Directories of programs that a system of Debian has itself. */
const systemDirectories = ['/usr/bin', '/usr/sbin', '/usr/games', '/usr/local/bin', '/usr/local/sbin'];

interface SystemPackages {
  /** By the app itself: without them there is no build. */
  readonly asked: readonly string[];
  /** By its dependencies, which may do without. */
  readonly implied: readonly string[];
}

/** With packages of Debian. Tools of the host that have directories of their own below /usr are shown in the system. */
async function addSystem(
  combined: CombinedPlan,
  { asked, implied }: SystemPackages,
  toolchains: Toolchains,
): Promise<{ combined: CombinedPlan; notes: readonly string[] }> {
  const names = [...new Set([...asked, ...implied])].sort();
  if (names.length === 0) return { combined, notes: [] };
  let system: System;
  try {
    system = await toolchains.findSystem(names, combined.toolchain);
  } catch (error) {
    if (!(error instanceof BuildFailure)) throw error;
    if (implied.length === 0) throw error;
    const without = `Without ${[...new Set(implied)].join(', ')}, which dependencies of the app may need: ${error.message}`;
    const rest = await addSystem(combined, { asked, implied: [] }, toolchains);
    return { ...rest, notes: [...rest.notes, without] };
  }
  const prefixes = combined.path.filter((path) => path.startsWith('/usr/') && !systemDirectories.includes(path)).map(dirname);
  const ofDebian = combined.toolchain.some((mount) => mount.kind === 'stored' && mount.name.startsWith('debian-'));
  const shown = ofDebian ? [] : prefixes.map((path) => ({ kind: 'host', path }) as const);
  return {
    combined: { ...combined, path: [...combined.path, '/usr/games'], toolchain: [...shown, ...system.mounts] },
    notes: [`Installing packages of Debian (${system.codename}): ${names.join(', ')}`],
  };
}
