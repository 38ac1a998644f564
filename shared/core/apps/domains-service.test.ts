import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createJobHandlers } from '#deploy/control-plane.ts';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { createAddresses } from '#shared/core/addresses.ts';
import type { Domain } from '#shared/core/apps/apps.ts';
import { runSettleDomainJob } from '#shared/core/apps/domain-verification.ts';
import { secondsPerDay } from '#shared/durations.ts';
import type { AppId, UserId } from '#shared/ids.ts';
import type { FakeJobs } from '#shared/jobs/fake-jobs.ts';
import { seedRelease } from '#test/support/api/seeds.ts';
import { createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

describe('domains on a public platform', () => {
  let test: TestApi;
  beforeAll(async () => {
    test = await createTestApi();
    test.context.addresses = createAddresses({
      baseUrl: 'https://paas.example.net',
      appsDomain: 'apps.example.net',
      httpPort: 80,
      httpsPort: 443,
      sshPort: 22,
    });
  });
  afterAll(() => test.close());

  let host: string;
  beforeEach(() => {
    host = `www.${crypto.randomUUID()}.com`;
  });

  interface Owner {
    user: TestUser;
    principal: Principal;
    app: { id: AppId; name: string };
  }
  /** With an app that runs. */
  async function createOwner(): Promise<Owner> {
    const user = await test.signUp();
    const app = await test.createApp(user);
    await seedRelease(test, user, app.id);
    await runJobs(app.id);
    const principal = await test.services.accounts.resolvePrincipal({ userId: user.id as UserId, email: user.email });
    return { user, principal, app };
  }
  const add = async ({ principal, app }: Owner): Promise<Domain> =>
    (await test.services.domains.addDomain(principal, app.id, host)).domain;
  const read = async ({ principal, app }: Owner): Promise<Domain | undefined> =>
    (await test.services.domains.listDomains(principal, app.id)).find((domain) => domain.host === host);
  const prove = (domain: Domain): void => {
    if (domain.proof !== null) test.resolver.texts.set(domain.proof.name, ['v=spf1 -all', domain.proof.value]);
  };
  /** What the worker would do of an app by now. */
  async function runJobs(appId: AppId): Promise<void> {
    const handlers = createJobHandlers(test.context);
    await handlers['ensure-workload']({ appId }, new AbortController().signal);
  }
  const settle = ({ app }: Owner): Promise<void> => runSettleDomainJob(test.context, app.id, host);

  it('lead nowhere and block nobody before the TXT record is there', async () => {
    const [squatter, owner] = [await createOwner(), await createOwner()];
    const claim = await add(squatter);
    expect(claim).toMatchObject({ status: 'pending', proof: { name: `_paas.${host}` }, certificate: { status: 'pending' } });
    await settle(squatter);
    await runJobs(squatter.app.id);
    expect(await test.context.platform.certificates.readCertificate(host)).toBeUndefined();

    prove(await add(owner));
    expect(await add(owner)).toMatchObject({ status: 'active', proof: null });
    await runJobs(owner.app.id);
    expect(await read(owner)).toMatchObject({ certificate: { status: 'issued', expiresAt: expect.any(Date) } });
    expect(await read(squatter)).toMatchObject({ status: 'pending' });
  });

  it('want the proof of this very claim: another app’s record proves nothing', async () => {
    const [owner, thief] = [await createOwner(), await createOwner()];
    const claim = await add(owner);
    prove(claim);
    expect((await add(thief)).proof?.value).not.toBe(claim.proof?.value);
    await settle(thief);
    expect(await read(thief)).toMatchObject({ status: 'pending' });
  });

  it('are found proven by the job that looks for the record again', async () => {
    const owner = await createOwner();
    const claim = await add(owner);
    await settle(owner);
    expect(await read(owner)).toMatchObject({ status: 'pending' });
    prove(claim);
    await settle(owner);
    expect(await read(owner)).toMatchObject({ status: 'active' });
  });

  it('go to who controls the DNS now, and never to two apps at once', async () => {
    const [before, after] = [await createOwner(), await createOwner()];
    prove(await add(before));
    await add(before);
    await runJobs(before.app.id);
    prove(await add(after));
    await settle(after);
    // Taken from the old app, but its route is still there: not the new one's yet.
    expect([await read(before), (await read(after))?.status]).toEqual([undefined, 'pending']);
    await runJobs(before.app.id);
    await settle(after);
    expect(await read(after)).toMatchObject({ status: 'active' });
    await runJobs(after.app.id);
    expect(await read(after)).toMatchObject({ certificate: { status: 'issued' } });
  });

  it('are free again when they were removed, once the route is gone', async () => {
    const owner = await createOwner();
    prove(await add(owner));
    await add(owner);
    await runJobs(owner.app.id);
    await test.services.domains.removeDomain(owner.principal, owner.app.id, host);
    await expect(add(owner)).rejects.toThrow('is being removed. Try again in a moment.');
    await runJobs(owner.app.id);
    expect(await test.context.platform.certificates.readCertificate(host)).toBeUndefined();
    expect(await add(owner)).toMatchObject({ status: 'pending' });
  });

  it('stay with an app that is deleted and restored, unless somebody proves to own them meanwhile', async () => {
    const owner = await createOwner();
    prove(await add(owner));
    await add(owner);
    await test.services.appDeletion.deleteApp(owner.principal, owner.app.id);
    await runJobs(owner.app.id);
    await test.services.appDeletion.restoreApp(owner.principal, owner.app.id);
    await runJobs(owner.app.id);
    expect(await read(owner)).toMatchObject({ status: 'active', certificate: { status: 'issued' } });

    await test.services.appDeletion.deleteApp(owner.principal, owner.app.id);
    await runJobs(owner.app.id);
    const heir = await createOwner();
    prove(await add(heir));
    await settle(heir);
    await runJobs(owner.app.id);
    await settle(heir);
    expect(await read(heir)).toMatchObject({ status: 'active' });
  });

  it('are won by one of many who prove at the same moment', async () => {
    const owners = await Promise.all(Array.from({ length: 5 }, createOwner));
    const claims = await Promise.all(owners.map(add));
    test.resolver.texts.set(
      `_paas.${host}`,
      claims.map((claim) => claim.proof?.value ?? ''),
    );
    await Promise.all(owners.map(settle));
    const rows = await test.context.db.selectFrom('domains').select('status').where('host', '=', host).execute();
    expect(rows.filter(({ status }) => status !== 'pending')).toHaveLength(1);
  });

  it('are looked for ever more seldom, and no more after a week', async () => {
    const owner = await createOwner();
    await add(owner);
    const jobs = test.context.jobs as FakeJobs;
    const waits: number[] = [];
    const recorded = {
      ...test.context,
      jobs: {
        enqueue: (...[, , , options]: Parameters<typeof jobs.enqueue>) => {
          waits.push(Math.round(((options?.runAt?.getTime() ?? 0) - test.clock.now().getTime()) / 1000));
          return Promise.resolve();
        },
      },
    };
    for (const seconds of [0, 40, secondsPerDay, 7 * secondsPerDay]) {
      test.clock.advance(seconds * 1000);
      await runSettleDomainJob(recorded, owner.app.id, host);
    }
    expect(waits).toEqual([2, 10, 900]);
  });
});
