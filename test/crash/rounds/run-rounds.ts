import { setTimeout as delay } from 'node:timers/promises';
import type { RepositoryId } from '#shared/ids.ts';
import type { PlatformFacts } from '#test/support/crash/control-plane-calls.ts';
import { type ControlPlaneProcess, OutcomeUnknown } from '#test/support/crash/control-plane-process.ts';
import { createRandom, type Random } from '#test/support/random.ts';
import { type FaultInjector, type FaultKind, openFaultInjector } from './fault-injector.ts';
import { findLeftovers, findUnfinished, findViolations, fsck, waitUntilIdle } from './invariants.ts';
import type { Check, Operation } from './operation.ts';
import { operations } from './operations.ts';
import type { RoundResults } from './round-results.ts';
import { createTestEnvironment, type OperationKind, operationKinds, type TestEnvironment } from './test-environment.ts';

export interface RoundsOptions {
  fault: FaultKind;
  /** Superuser's URL of a PostgreSQL. */
  serverUrl: string;
  rounds: number;
  /** One app for each kind of operation, for quick rounds. */
  oneAppPerKind?: boolean;
  seed: number;
  /** Times are allowed to be so many times longer, on a machine that does something else as well. */
  patience?: number;
  /** Results are added to these. */
  results: RoundResults;
  /** Ends the rounds after the present one. */
  stopping?: AbortSignal;
}

/** A control plane that survives the faults is killed after so many rounds on average, and another one takes over. */
const roundsOfControlPlane = 8;

/**
 * Runs rounds on one database. In a round all kinds of operations are started, and in the middle of them a fault is injected: the
 * control plane, its connections or its database are killed. The next round waits until all work has ended, and compares the state
 * with what was acknowledged. The rounds end early where something is wrong, and the state is kept.
 */
export async function runRounds({ oneAppPerKind = false, patience = 1, ...options }: RoundsOptions): Promise<void> {
  const { fault, serverUrl, rounds, seed } = options;
  const random = createRandom(seed);
  const injector = await openFaultInjector(fault, serverUrl, random);
  try {
    const environment = await createTestEnvironment({ ...injector, deliveries: rounds + 1, oneAppPerKind });
    try {
      await runRoundsIn({ ...options, environment, injector, random, patience });
    } finally {
      await environment.close();
    }
  } finally {
    await injector.close();
  }
}

interface RoundContext {
  environment: TestEnvironment;
  injector: FaultInjector;
  random: Random;
  results: RoundResults;
  patience: number;
}

async function runRoundsIn(context: RoundsOptions & RoundContext): Promise<void> {
  const { environment, injector, random, results, patience, fault, seed, rounds, stopping } = context;
  let checks: readonly Check[] = [];
  let points: readonly string[] = [];
  let controlPlane: ControlPlaneProcess | undefined;
  const report = async (round: number, problems: readonly string[]): Promise<void> => {
    if (problems.length === 0) return;
    const where = points.length === 0 ? '' : `, fault ${points.join(', ')}`;
    for (const problem of problems) results.addViolation(`${fault}, seed ${seed}, round ${round}${where}: ${problem}`);
    results.addViolation(`The state is kept in ${environment.directory}`);
    await environment.keep({ fault, seed, round, points, problems });
  };
  for (let round = 0; ; round++) {
    const problems: string[] = [];
    const startedAt = performance.now();
    if (controlPlane === undefined) {
      controlPlane = await environment.startControlPlane();
      problems.push(...(await findLeftovers(environment)));
    }
    problems.push(...(await waitUntilIdle(environment, patience)));
    results.longestResumeSeconds = Math.max(results.longestResumeSeconds, (performance.now() - startedAt) / 1000);
    const facts = await readFacts(controlPlane);
    for (const check of checks) problems.push(...(await check(facts)));
    problems.push(...(await findViolations(environment, facts)));
    await report(round, problems);
    if (round === rounds || problems.length > 0 || stopping?.aborted === true) {
      await controlPlane.kill();
      for (const app of operationKinds.flatMap((kind) => environment.apps[kind])) {
        await report(round, await fsck(environment, app.id as string as RepositoryId));
        results.checkedRepositories += 1;
      }
      return;
    }
    ({ checks, points } = await runRound(context, controlPlane));
    if (!injector.hostSurvives || random(roundsOfControlPlane) === 0) {
      await controlPlane.kill();
      controlPlane = undefined;
    }
  }
}

/** For a request that is neither answered nor cut off. */
const answerSeconds = 60;

/** Asks again where the database was away for a moment. */
async function readFacts(controlPlane: ControlPlaneProcess): Promise<PlatformFacts> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await controlPlane.call<PlatformFacts>({ kind: 'facts' });
    } catch (error) {
      if (!(error instanceof OutcomeUnknown) || attempt === 20) throw error;
    }
  }
}

interface StartedOperation {
  kind: OperationKind;
  appId: string;
  operation: Operation;
  unanswered: number;
}

async function runRound(
  { environment, injector, random, results, patience }: RoundContext,
  controlPlane: ControlPlaneProcess,
): Promise<{ checks: readonly Check[]; points: readonly string[] }> {
  const { hostSurvives } = injector;
  const started: StartedOperation[] = [];
  for (const kind of operationKinds) {
    for (const app of environment.apps[kind]) {
      const operation = await operations[kind]({ environment, controlPlane, app, random, hostSurvives });
      started.push({ kind, appId: app.id, operation, unanswered: 0 });
    }
  }
  const over = new AbortController();
  const timeouts: string[] = [];
  const answerMilliseconds = answerSeconds * patience * 1000;
  const points = await injector.injectFault(controlPlane, {
    async start() {
      await Promise.all(
        started.map(async (one) => {
          const unanswered = await Promise.race([one.operation.start(), delay(answerMilliseconds, undefined, { ref: false })]);
          if (unanswered === undefined) timeouts.push(`${one.kind}: no answer in ${answerMilliseconds / 1000} s`);
          one.unanswered = unanswered ?? one.operation.requests;
        }),
      );
    },
    whenIdle: () => waitUntilIdle(environment, patience, over.signal),
  });
  over.abort();
  const unfinished = await findUnfinished(environment);
  for (const point of points) results.addFault(point);
  for (const { kind, appId, operation, unanswered } of points.length === 0 ? [] : started) {
    const { requests } = operation;
    results.addOperation(kind, { started: requests, interrupted: unfinished.has(appId) ? requests : unanswered });
  }
  return { checks: [...started.map(({ operation }) => operation.check), async () => timeouts], points };
}
