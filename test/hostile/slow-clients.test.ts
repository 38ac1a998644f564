import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { SlowCrowd, slowKinds } from '#test/hostile/slow/slow-clients.ts';
import { type RunningPlatform, removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { createUser, type User, type WorkingCopy } from '#test/support/platform/user.ts';

let platform: RunningPlatform;
let ada: User;
let copy: WorkingCopy;
beforeAll(async () => {
  platform = await startPlatform();
  ada = await createUser(platform);
  const { push_url } = await ada.createApp('hello');
  copy = await ada.createWorkingCopy(push_url, { 'readme.txt': 'hello\n' });
});
afterAll(async () => {
  await ada.remove();
  await removePlatform(platform);
});

/** The short form of `npm run test:slow-clients`: a tenth of its connections, and no clock. */
it('real pushes get through over SSH and HTTP beside clients that send a byte at a time, before and after a login', async () => {
  const privateKey = await readFile(join(ada.home, 'id_ed25519'), 'utf8');
  const people = [{ token: ada.token, privateKey, app: 'hello' }];
  const crowd = new SlowCrowd({ httpPort: platform.httpPort, sshPort: platform.sshPort, people });
  try {
    for (const kind of slowKinds) await crowd.send(kind, 100, 200);
    expect(crowd.count('in a pack (SSH)')).toBe(100);
    expect(crowd.count('in the body of a push (HTTP)')).toBe(100);
    await copy.commit({ 'readme.txt': 'hello again\n' });
    const http = `http://git:${ada.token}@localhost:${platform.httpPort}/hello.git`;
    for (const [i, url] of ['paas', http].entries()) {
      const pushed = await copy.push('-q', url, `HEAD:refs/tags/through-${i}`);
      expect(pushed.code, pushed.output).toBe(0);
    }
    expect(crowd.count('in a pack (SSH)')).toBe(100);
    expect(crowd.count('in the body of a push (HTTP)')).toBe(100);
  } finally {
    await crowd.end();
  }
});
