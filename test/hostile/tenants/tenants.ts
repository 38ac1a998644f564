/**
 * `npm run test:hostile:tenants`: runs all probes at once from three tenants, while an honest fourth pushes, deploys and serves. Prints
 * what each probe gained, and what the honest tenant noticed. Exits with 1 if an attacker gained anything, or the honest tenant
 * noticed more than is allowed. `-- --only TEXT` runs the probes whose family or name contains the text, `-- --part 1/4` the first quarter
 * of them. Together with anything else that keeps the machine busy it takes long, and times of the honest tenant say little.
 */
import { parseArgs } from 'node:util';
import { allProbes } from './all-probes.ts';
import { type Attacker, openAttackedPlatform } from './attacked-platform.ts';
import { createHonestTenant } from './honest-tenant.ts';
import { attemptsInBuild, runProbe } from './run-probes.ts';

const allowed = { pushRatio: 3, apiRatio: 5, failedRequests: 0 };
const names = ['mallory', 'trudy', 'eve'] as const;
const { only, part } = parseArgs({
  options: { only: { type: 'string', default: '' }, part: { type: 'string', default: '1/1' } },
}).values;
const [number = 1, parts = 1] = part.split('/').map(Number);
const probes = allProbes
  .filter(({ family, name }) => family.includes(only) || name.includes(only))
  .filter((_, index) => index % parts === number - 1);
if (probes.length === 0) throw new Error(`No probe is in part ${part} of what contains "${only}".`);

const gains = new Map<string, string[]>();
const attacked = await openAttackedPlatform();
try {
  const honest = await createHonestTenant(attacked.platform);
  const alone = await honest.measure((rounds) => Promise.resolve(rounds < 5));
  const attackers: Attacker[] = [];
  for (const name of names) attackers.push(await attacked.addAttacker(name, attemptsInBuild(probes)));
  let attacking = true;
  const attacks = Promise.all(attackers.map((attacker, index) => attack(attacker, index))).finally(() => {
    attacking = false;
  });
  // Awaited below: what the honest tenant runs into first is the error to report.
  attacks.catch(() => undefined);
  const beside = await honest.measure((rounds) => Promise.resolve(attacking || rounds < 5));
  await attacks;
  report(alone, beside, await honest.findLosses());
  await honest.remove();
} finally {
  await attacked.close();
}

/** All probes, each attacker from another one on, so that they meet in ever new combinations. */
async function attack(attacker: Attacker, index: number): Promise<void> {
  const first = Math.floor((probes.length * index) / names.length);
  for (const probe of [...probes.slice(first), ...probes.slice(0, first)]) {
    const begun = performance.now();
    const gained = await runProbe(probe, attacker).then(
      (result) => result.gained,
      (error: unknown) => `did not run: ${String(error)}`,
    );
    console.error(
      `${attacker.app.name.padEnd(8)} ${((performance.now() - begun) / 1000).toFixed(1).padStart(6)} s  ${probe.name}`,
    );
    if (gained !== undefined) gains.set(probe.name, [...(gains.get(probe.name) ?? []), `${attacker.app.name}: ${gained}`]);
  }
}

type Measured = Awaited<ReturnType<Awaited<ReturnType<typeof createHonestTenant>>['measure']>>;

function report(alone: Measured, beside: Measured, losses: readonly string[]): void {
  for (const { family, name, gain } of probes) {
    const gained = gains.get(name);
    console.log(`${gained === undefined ? 'nothing' : 'GAINED '}  ${family.padEnd(12)}  ${name}`);
    for (const line of gained ?? []) console.log(`         ${line.slice(0, 500)} (${gain})`);
  }
  const pushRatio = beside.pushSeconds / alone.pushSeconds;
  const apiRatio = beside.apiMilliseconds / alone.apiMilliseconds;
  console.log(`\n${probes.length} probes from ${names.length} tenants at once; ${gains.size} gained something.`);
  console.log('The honest tenant:');
  console.log(
    `  push to live   ${alone.pushSeconds.toFixed(2)} s → ${beside.pushSeconds.toFixed(2)} s (${pushRatio.toFixed(1)}×), ${beside.pushes} pushes`,
  );
  console.log(
    `  API p99        ${alone.apiMilliseconds.toFixed(0)} ms → ${beside.apiMilliseconds.toFixed(0)} ms (${apiRatio.toFixed(1)}×)`,
  );
  console.log(`  requests       ${beside.requests}, of which failed: ${beside.failedRequests}`);
  console.log(`  lost           ${losses.length === 0 ? 'nothing' : losses.join(', ')}`);
  const bad =
    gains.size > 0 ||
    losses.length > 0 ||
    pushRatio > allowed.pushRatio ||
    apiRatio > allowed.apiRatio ||
    beside.failedRequests > allowed.failedRequests;
  process.exitCode = bad ? 1 : 0;
}
