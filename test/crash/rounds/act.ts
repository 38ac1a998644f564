import type { RepositoryId } from '#shared/ids.ts';
import { type CrashHost, OutcomeUnknown } from '#test/support/crash/crash-host-process.ts';
import type { HostFacts } from '#test/support/crash/host-calls.ts';
import type { Random } from '#test/support/random.ts';
import type { World, WorldApp } from './world.ts';

/** What an act has to do with. */
export interface Scene {
  readonly world: World;
  readonly host: CrashHost;
  readonly app: WorldApp;
  readonly random: Random;
  /** The control plane outlives what happens, and may have to say that it does not know; else it may refuse nothing. */
  readonly outages: boolean;
}

/** Asked once everything has settled: what is wrong. */
export type Check = (facts: HostFacts) => Promise<readonly string[]>;

/** Made ready while all is well. */
export interface Act {
  /** How many requests it makes. */
  readonly requests: number;
  /** @returns how many of them nobody answered */
  begin(): Promise<number>;
  readonly check: Check;
}

/** One thing to be done to an app of its area, in the middle of which something happens. */
export type MakeAct = (scene: Scene) => Promise<Act>;

/** The answer, or undefined when it is unknown. What else it refuses is a fault: nothing here is refusable. */
export async function answered<Value>(call: Promise<Value>): Promise<Value | undefined> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof OutcomeUnknown) return undefined;
    throw error;
  }
}

export function buildsOf({ world, app }: Scene, commit: string) {
  return world.db
    .selectFrom('builds')
    .selectAll()
    .where('app_id', '=', app.id)
    .where('commit', '=', commit)
    .orderBy('created_at')
    .execute();
}

/** By name. */
export async function refsOf({ world, app }: Scene): Promise<ReadonlyMap<string, string>> {
  const rows = await world.db
    .selectFrom('git_refs')
    .select(['name', 'oid'])
    .where('repository_id', '=', app.id as string as RepositoryId)
    .execute();
  return new Map(rows.map(({ name, oid }) => [name, oid]));
}
