import type { Attacker } from './attacked-platform.ts';

/** What a probe attacks. */
export const families = [
  'files',
  'processes',
  'network',
  'kernel',
  'resources',
  'disk',
  'queues',
  'entry points',
  'information',
  'add-ons',
] as const;
export type Family = (typeof families)[number];

/** What the attacking code says that it got. JSON. Not trusted: a judge compares it with what it sees itself. */
export type Claim = unknown;

/** An attack on a running platform. */
export interface Attack {
  /** What the attacker's build must do for it, as `npm run build`. */
  readonly inBuild?: Attempt;
  run(attacker: Attacker): Promise<Claim>;
}

/** A call of a function of `attacks/`, by its name. */
export interface Attempt {
  readonly name: string;
  readonly args: unknown;
}

export interface Probe {
  /** What stays impossible, as the end of "A tenant …": 'reads no file of the operator'. */
  readonly name: string;
  readonly family: Family;
  /** What a success would give to the attacker. */
  readonly gain: string;
  /** Whether `npm test` runs it. */
  readonly quick?: boolean;
  /** A function where its arguments are known only when the platform runs. */
  readonly attack: Attack | ((attacker: Attacker) => Attack);
  /** @returns what the attacker gained, by evidence from outside of the sandbox where there is any; undefined for nothing */
  judge(claim: Claim, attacker: Attacker): string | undefined | Promise<string | undefined>;
  /** The same done by the operator: the judge must take it for a success, or it would take anything for a failure. */
  readonly control?: Attack | ((attacker: Attacker) => Attack);
}

/** The attack is code in the attacker's running app. */
export function inApp(name: string, args: unknown = {}): Attack {
  return { run: (attacker) => attacker.attempt({ name, args }) };
}

/** The attack is code in a build of the attacker's app. It is run before all others, since one build runs all of them. */
export function inBuild(name: string, args: unknown = {}): Attack {
  const attempt = { name, args };
  return { inBuild: attempt, run: (attacker) => Promise.resolve(attacker.claimOfBuild(attempt)) };
}

/** The same code as in the attacker's app, but run by the operator outside of any sandbox. */
export function byOperator(name: string, args: unknown = {}): Attack {
  return { run: (attacker) => attacker.attemptOutside({ name, args }) };
}

/** The attack is a client of the platform. */
export function byClient(run: (attacker: Attacker) => Promise<Claim>): Attack {
  return { run };
}

/** Claims of `attempt…` functions that list what they reached. */
export function listOf(claim: Claim): readonly string[] {
  return Array.isArray(claim) ? claim.map(String) : [`not a list: ${JSON.stringify(claim)}`];
}

/** Judges a claim that lists what was reached. */
export function nothingReached(claim: Claim): string | undefined {
  const reached = listOf(claim);
  return reached.length === 0 ? undefined : reached.join(', ');
}
