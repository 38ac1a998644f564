import { setTimeout as delay } from 'node:timers/promises';
import type { RepositoryId } from '#shared/ids.ts';
import { type CrashHost, OutcomeUnknown } from '#test/support/crash/crash-host-process.ts';
import type { HostFacts } from '#test/support/crash/host-calls.ts';
import { createRandom, type Random } from '#test/support/random.ts';
import type { Act, Check } from './act.ts';
import { acts } from './acts.ts';
import { findLeftovers, findUnfinished, findViolations, fsck, settle } from './invariants.ts';
import { type Ground, openGround, type Way } from './strikes.ts';
import type { Tally } from './tally.ts';
import { type Area, areas, createWorld, type World } from './world.ts';

export interface RoundsOptions {
  way: Way;
  /** Superuser's URL of a PostgreSQL. */
  serverUrl: string;
  rounds: number;
  /** One app of each area: a quick world. */
  few?: boolean;
  seed: number;
  tally: Tally;
  stopping?: AbortSignal;
}

/** Of those that a control plane outlives: now and then another one finds what they have left. */
const roundsOfHost = 8;

/**
 * Rounds on one database: all that the round before left is finished and held against what was acknowledged, then work
 * is begun in every area and in the middle of it the control plane, its connections or its database are killed. Ends early
 * where something is wrong, and keeps what there is to look at.
 */
export async function runRounds(options: RoundsOptions): Promise<void> {
  const { way, serverUrl, rounds, few = false, seed, tally, stopping } = options;
  const random = createRandom(seed);
  const ground = await openGround(way, serverUrl, random);
  try {
    const world = await createWorld({ ...ground, deliveries: rounds + 1, few });
    try {
      await playRounds(world, ground, rounds, random, { way, seed }, tally, stopping);
    } finally {
      await world.close();
    }
  } finally {
    await ground.close();
  }
}

async function playRounds(
  world: World,
  ground: Ground,
  rounds: number,
  random: Random,
  origin: { way: Way; seed: number },
  tally: Tally,
  stopping: AbortSignal | undefined,
): Promise<void> {
  let checks: readonly Check[] = [];
  let points: readonly string[] = [];
  let host: CrashHost | undefined;
  const report = async (round: number, found: readonly string[]): Promise<void> => {
    if (found.length === 0) return;
    const struck = points.length === 0 ? '' : `, struck ${points.join(', ')}`;
    for (const what of found) tally.addViolation(`${origin.way}, seed ${origin.seed}, round ${round}${struck}: ${what}`);
    tally.addViolation(`To be looked at: ${world.directory}`);
    await world.keep({ ...origin, round, points, found });
  };
  for (let round = 0; ; round++) {
    const found: string[] = [];
    const begun = performance.now();
    if (host === undefined) {
      host = await world.startHost();
      found.push(...(await findLeftovers(world)));
    }
    found.push(...(await settle(world)));
    tally.longestResumeSeconds = Math.max(tally.longestResumeSeconds, (performance.now() - begun) / 1000);
    const facts = await readFacts(host);
    for (const check of checks) found.push(...(await check(facts)));
    found.push(...(await findViolations(world, facts)));
    await report(round, found);
    if (round === rounds || found.length > 0 || stopping?.aborted === true) {
      await host.kill();
      for (const app of areas.flatMap((area) => world.apps[area])) {
        await report(round, await fsck(world, app.id as string as RepositoryId));
        tally.fscks += 1;
      }
      return;
    }
    ({ checks, points } = await playRound(world, ground, host, random, tally));
    if (!ground.outages || random(roundsOfHost) === 0) {
      await host.kill();
      host = undefined;
    }
  }
}

/** Of a request that is neither answered nor cut. */
const answerMilliseconds = 60_000;

/** Asked again where the database was just away. */
async function readFacts(host: CrashHost): Promise<HostFacts> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await host.call<HostFacts>({ kind: 'facts' });
    } catch (error) {
      if (!(error instanceof OutcomeUnknown) || attempt === 20) throw error;
    }
  }
}

interface Begun {
  area: Area;
  appId: string;
  act: Act;
  unanswered: number;
}

async function playRound(
  world: World,
  ground: Ground,
  host: CrashHost,
  random: Random,
  tally: Tally,
): Promise<{ checks: readonly Check[]; points: readonly string[] }> {
  const { outages } = ground;
  const all: Begun[] = [];
  for (const area of areas) {
    for (const app of world.apps[area]) {
      const act = await acts[area]({ world, host, app, random, outages });
      all.push({ area, appId: app.id, act, unanswered: 0 });
    }
  }
  const over = new AbortController();
  const unheard: string[] = [];
  const points = await ground.strike(host, {
    async begin() {
      await Promise.all(
        all.map(async (begun) => {
          const answers = await Promise.race([begun.act.begin(), delay(answerMilliseconds, undefined, { ref: false })]);
          if (answers === undefined) unheard.push(`${begun.area}: no answer in ${answerMilliseconds / 1000} s`);
          begun.unanswered = answers ?? begun.act.requests;
        }),
      );
    },
    settled: () => settle(world, over.signal),
  });
  over.abort();
  const unfinished = await findUnfinished(world);
  for (const point of points) tally.addPoint(point);
  for (const { area, appId, act, unanswered } of points.length === 0 ? [] : all) {
    const { requests } = act;
    tally.addAct(area, { begun: requests, cut: unfinished.has(appId) ? requests : unanswered });
  }
  return { checks: [...all.map(({ act }) => act.check), async () => unheard], points };
}
