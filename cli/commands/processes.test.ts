import { beforeEach, describe, expect, it } from 'vitest';
import { atSmallPlatform } from '#cli/testing/at-small-platform.ts';

const at = atSmallPlatform();

describe('ps of an app that has never been live', () => {
  beforeEach(async () => {
    await at.logIn();
    await at.paas(['create', 'hello']);
  });
  const ps = async () => (await at.paas(['ps', '-a', 'hello'])).stderr;
  const deploy = (status: 'rolling' | 'aborted', error: string | null) => {
    at.platform.deploys.unshift({
      id: crypto.randomUUID(),
      release_id: crypto.randomUUID(),
      version: 3,
      status,
      weight: 0,
      steps: [],
      error,
      created_at: new Date().toISOString(),
      finished_at: null,
    });
  };

  it('says that nothing was pushed, that a release is on its way, or why the newest one failed', async () => {
    expect(await ps()).toContain('it has no release. Push with');
    deploy('rolling', null);
    expect(await ps()).toContain('no processes yet: v3 is being deployed');
    deploy('aborted', 'web.1 exited with code 7 before it listened on PORT');
    expect(await ps()).toMatch(/v3 failed: web\.1 exited with code 7.*\n.*paas restart/);
  });
});
