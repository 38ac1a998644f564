import type { RepositoryId } from '#shared/ids.ts';
import type { CrashHost } from '#test/support/crash/crash-host-process.ts';
import type { FailPointOrder } from '#test/support/crash/fail-point-order.ts';
import type { HostFacts } from '#test/support/crash/host-calls.ts';
import { pick, type Random } from '#test/support/random.ts';
import { acts, type Check } from './acts.ts';
import { findLeftovers, findViolations, fsck, settle } from './invariants.ts';
import { type Area, areas, createWorld, type World } from './world.ts';

export interface Tally {
  /** Control planes that were killed. */
  kills: number;
  /** By the point at which they died, or 'at a random moment'. */
  points: Map<string, number>;
  /** What was under way, or about to be, when they died. */
  acts: Map<Area, number>;
  fscks: number;
  /** From a start until nothing was under way any more. */
  longestResumeSeconds: number;
  readonly violations: readonly string[];
  addViolation(violation: string): void;
}

/** @param tell is called with each violation at once */
export function newTally(tell: (violation: string) => void = () => undefined): Tally {
  const violations: string[] = [];
  return {
    kills: 0,
    points: new Map(),
    acts: new Map(),
    fscks: 0,
    longestResumeSeconds: 0,
    violations,
    addViolation(violation) {
      violations.push(violation);
      tell(violation);
    },
  };
}

/** Longer than a round takes, in which everything is under way. */
const roundMilliseconds = 120;

/**
 * Rounds on one database: a control plane is started, all that the one before left is finished and held against what was
 * acknowledged, then work is begun in every area and the control plane is killed in the middle of it.
 */
export async function runRounds(
  serverUrl: string,
  rounds: number,
  random: Random,
  tally: Tally,
  stopping?: AbortSignal,
): Promise<void> {
  const world = await createWorld(serverUrl, { deliveries: rounds + 1 });
  const known = new Map<string, number>();
  try {
    let checks: readonly Check[] = [];
    for (let round = 0; round <= rounds; round++) {
      const host = await world.startHost();
      const found = [...(await findLeftovers(world))];
      const begun = performance.now();
      found.push(...(await settle(world)));
      tally.longestResumeSeconds = Math.max(tally.longestResumeSeconds, (performance.now() - begun) / 1000);
      const facts = await host.call<HostFacts>({ kind: 'facts' });
      for (const check of checks) found.push(...(await check(facts)));
      found.push(...(await findViolations(world, facts)));
      for (const what of found) tally.addViolation(`round ${round}: ${what}`);
      if (round === rounds || found.length > 0 || stopping?.aborted === true) {
        await host.kill();
        break;
      }
      // The first goes to its end, to learn what points there are.
      const order = round === 0 ? ({ kind: 'count' } as const) : chooseDeath(known, random);
      checks = await playRound(world, host, order, random, tally);
      for (const [point, count] of Object.entries(round === 0 ? await host.order({ kind: 'tell' }) : {})) known.set(point, count);
      await host.kill();
    }
    for (const app of areas.flatMap((area) => world.apps[area])) {
      for (const what of await fsck(world, app.id as string as RepositoryId)) tally.addViolation(what);
      tally.fscks += 1;
    }
  } finally {
    await world.close();
  }
}

type Death = FailPointOrder | { kind: 'moment'; milliseconds: number };

function chooseDeath(known: ReadonlyMap<string, number>, random: Random): Death {
  const way = random(10);
  if (way < 2) return { kind: 'moment', milliseconds: random(roundMilliseconds) };
  const all = [...known.values()].reduce((sum, count) => sum + count, 0);
  if (way < 5) return { kind: 'die', nth: 1 + random(all) };
  const [point, count] = pick(random, [...known]);
  return { kind: 'die', point, nth: 1 + random(count) };
}

async function playRound(world: World, host: CrashHost, death: Death, random: Random, tally: Tally): Promise<readonly Check[]> {
  if (death.kind === 'moment') setTimeout(() => void host.kill(), death.milliseconds);
  else await host.order(death);
  const begun = areas.flatMap((area) => world.apps[area].map((app) => ({ area, check: acts[area](world, host, app) })));
  const checks = await Promise.all(begun.map(({ check }) => check));
  // Some deaths wait for what goes on after the answers.
  const survived = await Promise.race([host.died.then(() => false), settle(world).then(() => true)]);
  if (death.kind === 'count') return checks;
  tally.kills += 1;
  for (const { area } of begun) tally.acts.set(area, (tally.acts.get(area) ?? 0) + 1);
  const point = survived || death.kind !== 'die' ? 'at a random moment' : (death.point ?? 'at a random point');
  tally.points.set(point, (tally.points.get(point) ?? 0) + 1);
  if (survived && death.kind === 'moment') await new Promise((resolve) => setTimeout(resolve, random(20)));
  return checks;
}
