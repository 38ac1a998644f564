import { type Asked, describeAnswer } from '#shared/core/releases/answer-rules.ts';
import {
  type DeployRun,
  deletionCause,
  describeWhatServes,
  hasMovedAway,
  type Verdict,
} from '#shared/core/releases/deploy-run.ts';
import { writeDeploySteps } from '#shared/core/releases/deploys-store.ts';
import type { DeployStep } from '#shared/core/releases/releases.ts';
import {
  decideStep,
  defaultRolloutRules,
  measureStep,
  type RolloutRules,
  type Step,
  type StepDecision,
  type StepStart,
  startOfStep,
} from '#shared/core/releases/rollout-rules.ts';
import { movedMessage } from '#shared/core/repositories/ref-moves.ts';
import { limits } from '#shared/limits.ts';
import type { RolloutFacts } from '#shared/platform/rollouts.ts';

/** Another attempt has claimed the deploy: nothing of this one is recorded. */
const fencedOff: Verdict = { status: 'superseded', error: null, failure: null, lines: [] };

/**
 * Brings the release live in steps, or aborts that. It starts the rollout, or continues one that an earlier attempt left, and
 * follows the driver's facts: each is recorded, judged and answered with an order.
 * @throws the reason of `stopping`: the rollout then stays at its weight. An Error when the platform could not carry it out
 */
export async function rollOut(run: DeployRun): Promise<Verdict> {
  const { context, app, deploy, release, spec, log, stopping } = run;
  const { rollouts } = context.platform;
  const weights = isFirst(run) || !hasWeb(run) ? [100] : defaultRolloutRules.weights;
  const rules: RolloutRules = {
    ...defaultRolloutRules,
    weights,
    stepSeconds: context.settings.canaryStepSeconds,
    restartSeconds: restartSecondsOf(spec),
  };
  if (deploy.attempt === 1) log.line(`-----> Starting v${release.version}`);
  const steps = [...deploy.steps];
  let highestWeight = 0;
  let step: StepStart | undefined;
  let judgedWeight = 0;
  const questions = createQuestions(run);
  await rollouts.startRollout(spec, weights);
  for await (const facts of rollouts.watchRollout(app.id, stopping)) {
    if (facts.releaseId !== release.id) throw new Error(`v${facts.releaseVersion} is being rolled out instead.`);
    const now = context.clock.now();
    if (facts.weight > highestWeight || steps.length === 0) {
      highestWeight = facts.weight;
      steps.push({ weight: facts.weight, at: now.toISOString() });
      if (!(await writeDeploySteps(context.db, deploy, steps))) return fencedOff;
    }
    if (facts.phase === 'live')
      return { status: 'live', error: null, failure: null, lines: [...describeSteps(run, steps), ...describeDeployed(run)] };
    if (facts.phase === 'aborted') return describeAborted(run, facts, steps);
    if (facts.phase === 'failed') throw new Error(facts.failure?.cause ?? 'The rollout failed.');
    step = startOfStep(facts, step, now);
    const measured = measureStep(facts, step, now);
    const decision = await decide(run, { ...measured, asked: questions.describe(facts) }, rules);
    if (decision.action === 'ask') {
      await questions.ask(decision.whom, measured);
      continue;
    }
    if (decision.action === 'wait' && facts.crash !== undefined) questions.excuse(facts.crash);
    if ('judgedBy' in decision && judgedWeight < facts.weight) {
      judgedWeight = facts.weight;
      log.line(`       ${facts.weight}%: ${decision.judgedBy}`);
    }
    await obey(run, facts, decision);
  }
  stopping.throwIfAborted();
  throw new Error('The rollout ended without a result.');
}

/** Ends a rollout that an earlier attempt began and of which it recorded no step, if there is one. @throws the reason of `stopping` */
export async function endUnrecordedRollout(
  { context, app, deploy, release, stopping }: DeployRun,
  reason: string,
): Promise<void> {
  if (deploy.attempt === 1) return;
  const { rollouts } = context.platform;
  await rollouts.abortRollout(app.id, release.id, reason);
  for await (const { releaseId } of rollouts.watchRollout(app.id, stopping)) if (releaseId !== release.id) break;
  stopping.throwIfAborted();
}

async function decide(run: DeployRun, step: Step, rules: RolloutRules): Promise<StepDecision> {
  if (run.deleted.aborted) return { action: 'abort', cause: deletionCause };
  const decision = decideStep(step, rules);
  // The last moment at which the old release can take all traffic back.
  if (decision.action === 'promote' && (await hasMovedAway(run))) return { action: 'abort', cause: movedMessage };
  return decision;
}

/** Gives the order that follows from a decision. The driver may report the same facts until it has carried that out. */
async function obey({ context, app, release }: DeployRun, facts: RolloutFacts, decision: StepDecision): Promise<void> {
  const { rollouts } = context.platform;
  switch (decision.action) {
    case 'wait':
    case 'ask':
      return;
    case 'advance':
      return rollouts.advanceRollout(app.id, release.id, facts.weight);
    case 'promote':
      return rollouts.promoteRollout(app.id, release.id);
    case 'abort':
      return rollouts.abortRollout(app.id, release.id, decision.cause);
  }
}

function isFirst({ app }: DeployRun): boolean {
  return app.current_release_id === null;
}

function hasWeb({ spec }: DeployRun): boolean {
  return spec.processes.some((process) => process.type === 'web' && process.quantity > 0);
}

/** The weights that were reached: those of an aborted rollout end where it was aborted. */
function describeSteps(run: DeployRun, steps: readonly DeployStep[]): string[] {
  const reached = steps.filter(({ weight }) => weight > 0);
  if (!hasWeb(run) || reached.length === 0) return [];
  return [`-----> Rolling out: ${reached.map(({ weight }) => `${weight}%`).join(' ')}`];
}

/** The platform's own questions to the releases of a rollout, and what came of them. */
interface Questions {
  describe(facts: RolloutFacts): Asked;
  /** The person who waits for the deploy reads what was answered. */
  ask(whom: 'candidate' | 'stable', step: Pick<Step, 'total'>): Promise<void>;
  /** Says, once, that an instance has ended by a question. */
  excuse(crash: string): void;
}

function createQuestions({ context, app, release, log }: DeployRun): Questions {
  const answers: Pick<Asked, 'candidate' | 'stable'> = {};
  let at: Date | undefined;
  let requestsBefore = 0;
  let isExcused = false;
  const name = `v${release.version}`;
  return {
    describe({ traffic }) {
      return {
        ...answers,
        seconds: at === undefined ? Number.POSITIVE_INFINITY : (context.clock.now().getTime() - at.getTime()) / 1000,
        hasHadVisitors: traffic.candidate.requests > requestsBefore,
        stableAnswersRoot: traffic.stable.answersRoot,
      };
    },
    async ask(whom, { total }) {
      const found = (await context.platform.rollouts.askRelease(app.id, release.id, whom)) ?? 'cannot';
      answers[whom] = found;
      if (whom === 'stable') return;
      at = context.clock.now();
      requestsBefore = total.requests;
      if (found === 'cannot') return;
      const visitors =
        total.requests === 0 ? 'No visitors' : total.requests === 1 ? 'One request' : `Only ${total.requests} requests`;
      const given = [...new Set(found.answers)].map(describeAnswer).join(', ');
      log.line(`       ${visitors} to judge ${name} by. Asked it instead: GET ${found.path} ${given}`);
    },
    excuse(crash) {
      if (isExcused) return;
      isExcused = true;
      log.line(`       ${name} ended when it was asked (${crash}). That alone does not stop a rollout.`);
      log.line('       Set a path that it can be asked for: paas settings:set health-path=/healthz');
    },
  };
}

/** For an instance that is started again: after the shortest delay, and as long as it may take. */
function restartSecondsOf({ bootTimeoutSeconds }: DeployRun['spec']): number {
  return 10 + (bootTimeoutSeconds ?? limits.app.bootSeconds);
}

function describeDeployed(run: DeployRun): string[] {
  const { context, app, spec } = run;
  const idle = spec.processes
    .filter((process) => process.quantity === 0 && process.type !== 'release')
    .map((process) => process.type);
  return [
    ...(idle.length > 0 ? [`       Not running: ${idle.join(', ')} (start with \`paas ps:scale ${idle[0]}=1\`)`] : []),
    hasWeb(run) ? `       ${context.addresses.webUrl(app.name)} deployed` : `       ${app.name} deployed`,
  ];
}

function describeAborted(run: DeployRun, { failure }: RolloutFacts, steps: readonly DeployStep[]): Verdict {
  const error = failure?.cause ?? 'The new release did not become healthy.';
  const refused = ` !     v${run.release.version} was not rolled out: ${error}`;
  if (run.deleted.aborted) return { status: 'aborted', error, failure: null, lines: [refused] };
  if (error === movedMessage) return { status: 'aborted', error, failure: 'moved', lines: [refused] };
  const output = (failure?.output ?? []).map((line) => `       ${line}`);
  return {
    status: 'aborted',
    error,
    failure: !isFirst(run) && steps.some(({ weight }) => weight > 0) ? 'canary' : 'boot',
    lines: [
      ...describeSteps(run, steps),
      ...(output.length > 0 ? ['       Its last output:', ...output] : []),
      refused,
      describeWhatServes(isFirst(run)),
    ],
  };
}
