import type { Attacker } from './attacked-platform.ts';
import type { Attack, Attempt, Probe } from './probe.ts';

export interface ProbeResult {
  readonly probe: Probe;
  /** What the attacker gained; undefined for nothing. */
  readonly gained: string | undefined;
  readonly milliseconds: number;
}

/** What the attacker's build must attempt for these probes. */
export function attemptsInBuild(probes: readonly Probe[]): Attempt[] {
  return probes.flatMap(({ attack }) => (typeof attack === 'object' && attack.inBuild !== undefined ? [attack.inBuild] : []));
}

export async function runProbe(probe: Probe, attacker: Attacker): Promise<ProbeResult> {
  const begun = performance.now();
  const gained = await judgeAttack(probe, probe.attack, attacker);
  return { probe, gained, milliseconds: Math.round(performance.now() - begun) };
}

/** @returns what the judge says to a success */
export async function runControl(probe: Probe, attacker: Attacker): Promise<string | undefined> {
  if (probe.control === undefined) return undefined;
  const noticed = await judgeAttack(probe, probe.control, attacker);
  // What was noticed of the operator's own visits is not an attacker's.
  attacker.canaries.takeVisits();
  attacker.neighbour.takeVisits();
  return noticed;
}

async function judgeAttack(probe: Probe, attack: Probe['attack'], attacker: Attacker): Promise<string | undefined> {
  const { run }: Attack = typeof attack === 'function' ? attack(attacker) : attack;
  const claim = await run(attacker);
  if (isError(claim)) throw new Error(`The attempt of "${probe.name}" did not run: ${claim.error}`);
  return probe.judge(claim, attacker);
}

/** An attempt that ended by an error of its own shows nothing. */
function isError(claim: unknown): claim is { error: string } {
  return typeof claim === 'object' && claim !== null && typeof (claim as { error?: unknown }).error === 'string';
}
