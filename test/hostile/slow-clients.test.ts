import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { SlowClients, slowKinds } from '#test/hostile/slow/slow-clients.ts';
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

/** The short form of `npm run test:slow-clients`: a tenth of its connections, without timing. */
it('pushes over SSH and HTTP succeed beside clients that send a byte at a time, before and after their login', async () => {
  const privateKey = await readFile(join(ada.home, 'id_ed25519'), 'utf8');
  const users = [{ token: ada.token, privateKey, app: 'hello' }];
  const slowClients = new SlowClients({ httpPort: platform.httpPort, sshPort: platform.sshPort, users });
  try {
    for (const kind of slowKinds) await slowClients.open(kind, 100, 200);
    expect(slowClients.count('pack (SSH)')).toBe(100);
    expect(slowClients.count('push body (HTTP)')).toBe(100);
    await copy.commit({ 'readme.txt': 'hello again\n' });
    const http = `http://git:${ada.token}@localhost:${platform.httpPort}/hello.git`;
    for (const [i, url] of ['paas', http].entries()) {
      const pushed = await copy.push('-q', url, `HEAD:refs/tags/through-${i}`);
      expect(pushed.code, pushed.output).toBe(0);
    }
    expect(slowClients.count('pack (SSH)')).toBe(100);
    expect(slowClients.count('push body (HTTP)')).toBe(100);
  } finally {
    await slowClients.close();
  }
});
