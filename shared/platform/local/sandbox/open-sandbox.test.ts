import { execFile } from 'node:child_process';
import { chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openVolumes, type Volumes } from '../disk/volumes.ts';
import { openSandbox, type Sandbox } from './open-sandbox.ts';
import { niceness, oomScoreAdjustment, type SandboxSpec } from './sandbox.ts';
import type { SandboxedProcess } from './sandbox-process.ts';

const mebibyte = 1024 * 1024;

let dataDir: string;
let sandbox: Sandbox;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "paas sandbox, it's \\ "));
  await mkdir(join(dataDir, 'image'));
  await writeFile(join(dataDir, 'image/file'), 'text');
  sandbox = await openSandbox({ dataDir, path: process.env['PATH'] ?? '' });
  const uid = await sandbox.ensureUid('test');
  await chown(join(dataDir, 'image/file'), uid, uid);
});
afterEach(() => rm(dataDir, { recursive: true }));

/** As an instance of an app is run. */
async function start(command: string): Promise<SandboxedProcess> {
  const spec: SandboxSpec = {
    id: 'test',
    uid: await sandbox.ensureUid('test'),
    argv: ['/bin/sh', '-c', command],
    env: { PATH: '/usr/bin:/bin' },
    cwd: '/app',
    mounts: [],
    layer: { source: join(dataDir, 'image'), target: '/app', bytes: mebibyte },
    tmp: { bytes: mebibyte },
    limits: { memoryBytes: 256 * mebibyte, processes: 64, fileBytes: mebibyte },
    dieWithParent: true,
  };
  return sandbox.spawn(spec, { stdout: 'pipe', stderr: 'pipe' });
}

async function readOutput(command: string): Promise<string> {
  const child = await start(command);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) for await (const chunk of stream ?? []) output += String(chunk);
  await child.exited;
  await sandbox.end(child.record);
  return output.trim();
}

describe.runIf(process.getuid?.() === 0)('code in a sandbox', () => {
  it('writes above its image, as its own user, and never into it', async () => {
    const uid = await sandbox.ensureUid('test');
    expect(await readOutput('cat file && echo new > file && mkdir a && stat -c %u . && cat file')).toBe(`text${uid}\nnew`);
    expect(await readOutput('cat file; ls')).toBe('textfile');
  });

  it('has a lower priority than the platform, and is killed before it when memory runs out', async () => {
    expect(await readOutput('nice; cat /proc/self/oom_score_adj')).toBe(`${getPriority() + niceness}\n${oomScoreAdjustment}`);
  });

  it('inherits no open directory of the host', async () => {
    expect(await readOutput('ls -l /proc/self/fd | grep -c -e image -e layer')).toBe('0');
  });
});

describe.runIf(process.getuid?.() === 0)('a volume that ends while an instance runs that was started meanwhile', () => {
  let others: Volumes;
  let otherDir: string;
  beforeEach(async () => {
    otherDir = await mkdtemp(join(tmpdir(), 'paas-other-'));
    others = await openVolumes(otherDir);
  });
  afterEach(async () => {
    await others.close();
    await rm(otherDir, { recursive: true });
  });

  it.each(['of this platform', 'of another one'])('gives its disk space back: %s', async (whose) => {
    const own = await openVolumes(dataDir);
    const file = join(whose === 'of another one' ? otherDir : dataDir, 'disk');
    const volume = await (whose === 'of another one' ? others : own).mount({ file, bytes: 32 * mebibyte, lasting: false });
    const child = await start('sleep 100');
    try {
      volume.unmount();
      const listDevices = async (): Promise<string> => (await promisify(execFile)('losetup', ['--associated', file])).stdout;
      await expect.poll(listDevices, { timeout: 5000 }).toBe('');
    } finally {
      await sandbox.end(child.record);
      await own.close();
    }
  });
});
