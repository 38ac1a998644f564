import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openVolumes, type Volumes } from './volumes.ts';

const run = promisify(execFile);
const mebibyte = 1024 * 1024;

let dataDir: string;
let volumes: Volumes;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'paas-volumes-'));
  volumes = await openVolumes(dataDir);
});
afterEach(async () => {
  await volumes.close();
  await rm(dataDir, { recursive: true });
});

const listMounts = async (): Promise<string[]> =>
  (await readFile('/proc/mounts', 'utf8')).split('\n').filter((line) => line.includes(dataDir));

describe.runIf(process.getuid?.() === 0)('a volume', () => {
  const spec = () => ({ file: join(dataDir, 'a/disk'), bytes: 32 * mebibyte, lasting: true });

  it('takes no more bytes and no more files than it has, whatever call writes them, and only what is used of the disk', async () => {
    expect(volumes.problem).toBeUndefined();
    const volume = await volumes.mount(spec());
    await expect(run('fallocate', ['-l', '40M', join(volume.path, 'large')])).rejects.toThrow('No space left');
    await rm(join(volume.path, 'large'), { force: true });
    const many = 'for n in $(seq 3000); do : > "$0/$n" || exit 1; done';
    await expect(run('/bin/sh', ['-c', many, volume.path])).rejects.toThrow('No space left');
    expect((await stat(spec().file)).blocks * 512).toBeLessThan(8 * mebibyte);
    volume.unmount();
  });

  it('has its files again when it is mounted again, at once', async () => {
    const first = await volumes.mount(spec());
    await writeFile(join(first.path, 'file'), 'text');
    first.unmount();
    const second = await volumes.mount(spec());
    expect(await readFile(join(second.path, 'file'), 'utf8')).toBe('text');
    second.unmount();
  });

  it('is empty when it is new, also where it is a copy of another empty one', async () => {
    const kinds = ['one', 'two'].map((name) => ({ file: join(dataDir, name), bytes: 32 * mebibyte, lasting: false }));
    for (const kind of kinds) {
      const volume = await volumes.mount(kind);
      expect(await readdir(volume.path)).toEqual(['lost+found']);
      await writeFile(join(volume.path, 'file'), Buffer.alloc(mebibyte));
      expect(await volume.readUsedBytes()).toBeGreaterThanOrEqual(mebibyte);
      expect(await volume.readUsedBytes()).toBeLessThan(2 * mebibyte);
      expect((await stat(kind.file)).mode & 0o777).toBe(0o600);
      volume.unmount();
    }
  });

  it('is mounted although the one that it would be a copy of was damaged', async () => {
    const spec = { file: join(dataDir, 'one'), bytes: 32 * mebibyte, lasting: false };
    (await volumes.mount(spec)).unmount();
    await writeFile(join(dataDir, 'volume-templates', String(spec.bytes)), Buffer.alloc(mebibyte));
    const volume = await volumes.mount({ ...spec, file: join(dataDir, 'two') });
    await writeFile(join(volume.path, 'file'), 'text');
    expect(await readdir(volume.path)).toContain('file');
    volume.unmount();
  });

  it('stays while others that were mounted with it go', async () => {
    const [one, two, three] = await Promise.all(
      ['one', 'two', 'three'].map((name) => volumes.mount({ file: join(dataDir, name), bytes: 32 * mebibyte, lasting: false })),
    );
    one?.unmount();
    two?.unmount();
    await expect.poll(listMounts).toHaveLength(2);
    await writeFile(join(three?.path ?? '', 'file'), 'text');
    three?.unmount();
    await expect.poll(listMounts).toEqual([]);
  });

  it('is empty after it was damaged', async () => {
    const first = await volumes.mount(spec());
    first.unmount();
    await volumes.close();
    await writeFile(spec().file, Buffer.alloc(mebibyte));
    const second = await volumes.mount(spec());
    expect((await stat(second.path)).isDirectory()).toBe(true);
    second.unmount();
  });

  it('leaves no mount behind, also when the platform was killed while it was mounted', async () => {
    await volumes.mount(spec());
    expect(await listMounts()).toHaveLength(2);
    volumes = await openVolumes(dataDir);
    expect(await listMounts()).toEqual([]);
    const volume = await volumes.mount(spec());
    volume.unmount();
    await expect.poll(listMounts).toEqual([]);
  });
});
