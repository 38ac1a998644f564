/**
 * `npm run test:slow-clients -- [--connections N]`: times a small push over SSH and over HTTP, first alone and then beside N
 * clients (1,000) that send a byte at a time, of each kind and then of all kinds at once. Prints the medians. Exits with 1
 * when a median is more than twice that of a push alone, or when a push failed.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { SlowClients, type SlowKind, type SlowUser, slowKinds } from '#test/hostile/slow/slow-clients.ts';
import { removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { createUser, type User } from '#test/support/platform/user.ts';

const { values } = parseArgs({ options: { connections: { type: 'string', default: '1000' } } });
const connections = Number(values.connections);
const pushesEach = 9;
const allowedRatio = 2;
const everyMilliseconds = 1000;

const platform = await startPlatform();
const ada = await createUser(platform);
const others: User[] = [];
let failed = false;
try {
  await measureAll();
} finally {
  for (const user of [ada, ...others]) await user.remove();
  await removePlatform(platform);
}
process.exitCode = failed ? 1 : 0;

async function measureAll(): Promise<void> {
  const { push_url } = await ada.createApp('hello');
  const copy = await ada.createWorkingCopy(push_url, { 'readme.txt': 'hello\n' });
  const urls = { SSH: push_url, HTTP: `http://git:${ada.token}@localhost:${platform.httpPort}/hello.git` };
  const slowUsers: SlowUser[] = [];
  // A user may send 600 requests a minute, so the slow clients belong to several users. None of them makes the timed pushes.
  for (let i = 0; i * 400 < connections; i++) {
    const user = await createUser(platform, `slow-${i}@example.com`);
    others.push(user);
    await user.createApp(`slow-${i}`);
    slowUsers.push({ token: user.token, privateKey: await readFile(join(user.home, 'id_ed25519'), 'utf8'), app: `slow-${i}` });
  }
  let pushes = 0;
  /** Median seconds of a push of one commit, by transport. */
  const measure = async (): Promise<readonly number[]> => {
    const medians: number[] = [];
    for (const url of Object.values(urls)) {
      const seconds: number[] = [];
      for (let i = 0; i < pushesEach; i++) {
        await copy.commit({ 'readme.txt': `${++pushes}\n` });
        const started = performance.now();
        const { code, output } = await copy.push('-q', url, `HEAD:refs/tags/push-${pushes}`);
        seconds.push((performance.now() - started) / 1000);
        if (code === 0) continue;
        failed = true;
        console.log(output.replaceAll(ada.token, '***'));
      }
      medians.push(seconds.toSorted((a, b) => a - b)[pushesEach >> 1] ?? 0);
    }
    return medians;
  };
  await measure();
  for (const kinds of [...slowKinds.map((kind) => [kind]), slowKinds]) {
    const alone = await measure();
    const slowClients = new SlowClients({ httpPort: platform.httpPort, sshPort: platform.sshPort, users: slowUsers });
    for (const kind of kinds) await slowClients.open(kind, connections, everyMilliseconds);
    const beside = await measure();
    report(kinds, slowClients, alone, beside);
    await slowClients.close();
  }
}

function report(kinds: readonly SlowKind[], slowClients: SlowClients, alone: readonly number[], beside: readonly number[]): void {
  const medians = ['SSH', 'HTTP'].map((transport, i) => {
    const [before = 0, now = 0] = [alone[i], beside[i]];
    if (now > before * allowedRatio) failed = true;
    return `${transport} ${before.toFixed(2)} s alone, ${now.toFixed(2)} s (× ${(now / before).toFixed(2)})`;
  });
  const open = kinds.map((kind) => `${slowClients.count(kind)} ${kind}`).join(', ');
  console.log(`${connections} each; open now: ${open}: ${medians.join('; ')}`);
}
