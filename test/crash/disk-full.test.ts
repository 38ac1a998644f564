import { mkdir, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nodeApp } from '#test/support/builds/sample-apps.ts';
import { type RunningPlatform, removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { createUser, type User, type WorkingCopy } from '#test/support/platform/user.ts';
import { run } from '#test/support/run-program.ts';

/** Sizes of small disks in megabytes, by directory: as much as a small app and an empty database need, and a little more. */
const disks = { '.': 64, git: 4, postgres: 200 };
type Disk = keyof typeof disks;

const probe = await mkdtemp(join(tmpdir(), 'paas-mount-'));
const mayMount = (await run('mount', ['-t', 'tmpfs', 'tmpfs', probe])).code === 0;
if (mayMount) await run('umount', [probe]);
else console.log('Full disks are not tested: this user may not mount file systems.');
await rm(probe, { recursive: true });

describe.runIf(mayMount)('a full disk', () => {
  let dataDir: string;
  let platform: RunningPlatform;
  let user: User;
  let copy: WorkingCopy;
  let words = 0;
  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'paas-disks-'));
    for (const [name, megabytes] of Object.entries(disks)) {
      await mkdir(join(dataDir, name), { recursive: true, mode: 0o711 });
      const mounted = await run('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=711`, 'tmpfs', join(dataDir, name)]);
      expect(mounted.code).toBe(0);
    }
    platform = await startPlatform({ dataDir });
    user = await createUser(platform);
    const app = await user.createApp('small');
    copy = await user.createWorkingCopy(app.push_url, nodeApp('first'));
    const first = await copy.push();
    expect(first.code, first.output).toBe(0);
  });
  afterAll(async () => {
    await user?.remove();
    await platform?.stop();
    for (const name of Object.keys(disks).toReversed()) await run('umount', ['--lazy', join(dataDir, name)]);
    if (platform === undefined) await rm(dataDir, { recursive: true });
    else await removePlatform(platform);
  });

  const fillerOf = (disk: Disk) => join(dataDir, disk, 'filler');
  async function fill(disk: Disk): Promise<void> {
    const file = await open(fillerOf(disk), 'a');
    try {
      for (const block of [Buffer.alloc(64 * 1024), Buffer.alloc(512)]) {
        for (let hasSpace = true; hasSpace; )
          hasSpace = await file.write(block).then(
            ({ bytesWritten }) => bytesWritten > 0,
            () => false,
          );
      }
    } finally {
      await file.close();
    }
  }
  const freeSpace = (disk: Disk) => rm(fillerOf(disk));
  async function pushAnother(): Promise<{ code: number | null; output: string }> {
    words += 1;
    await copy.commit(nodeApp(`word ${words} ${crypto.randomUUID()}`));
    return copy.push();
  }

  it('of repositories: a push is refused with the reason; with free space the same push is accepted', async () => {
    await fill('git');
    const refused = await pushAnother();
    expect(refused.code).not.toBe(0);
    expect(refused.output).toContain("the server's disk is full; nothing was changed");
    await freeSpace('git');
    expect(await copy.push()).toMatchObject({ code: 0 });
  });

  it('of builds and apps: no build starts, with the reason; with free space the same push is built', async () => {
    await fill('.');
    const failed = await pushAnother();
    expect(failed.code).not.toBe(0);
    expect(failed.output).toContain("The platform's disk is almost full, so no new builds start");
    await freeSpace('.');
    expect(await copy.push()).toMatchObject({ code: 0 });
  });

  it('of the database: requests are answered 503, nothing ends, and the platform recovers by itself', async () => {
    await fill('postgres');
    const create = () => user.ask('POST', '/v1/apps', {});
    await expect.poll(async () => (await create()).status, { timeout: 60_000, interval: 20 }).not.toBe(201);
    const refused = await create();
    expect(refused).toMatchObject({ status: 503, body: { error: { code: 'internal' } } });
    await freeSpace('postgres');
    await expect.poll(async () => (await create()).status, { timeout: 90_000, interval: 200 }).toBe(201);
    expect(await pushAnother()).toMatchObject({ code: 0 });
  });
});
