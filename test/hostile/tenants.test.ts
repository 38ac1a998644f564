import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { allProbes } from './tenants/all-probes.ts';
import { type AttackedPlatform, type Attacker, openAttackedPlatform } from './tenants/attacked-platform.ts';
import { attemptsInBuild, runControl, runProbe } from './tenants/run-probes.ts';

/** The short form of `npm run test:hostile:tenants`, which runs all probes and an honest tenant beside them. */
const probes = allProbes.filter(({ quick }) => quick === true);
const controlled = allProbes.filter(({ control }) => control !== undefined);

describe.skipIf(process.getuid?.() !== 0)('a tenant', () => {
  let attacked: AttackedPlatform;
  let attacker: Attacker;
  beforeAll(async () => {
    attacked = await openAttackedPlatform();
    attacker = await attacked.addAttacker('mallory', attemptsInBuild(probes));
  });
  afterAll(() => attacked.close());

  it.each(probes)('$name', async (probe) => {
    expect((await runProbe(probe, attacker)).gained).toBeUndefined();
  });

  it.each(controlled)('who $name: a success would be noticed', async (probe) => {
    expect(await runControl(probe, attacker)).toBeDefined();
  });
});
