import { readdir, readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AppId, newUuid } from '#shared/ids.ts';
import { buildSpec, buildToEnd, sourceOf } from '#shared/platform/testing/build-specs.ts';
import { openTestBuilds, type TestBuilds } from '#test/support/builds/test-builds.ts';

const mebibyte = 1024 * 1024;

let builds: TestBuilds;
beforeAll(async () => {
  builds = await openTestBuilds({ diskBytes: 96 * mebibyte, cacheBytes: 96 * mebibyte, slugBytes: 64 * mebibyte });
});
afterAll(() => builds.stop());

async function build(script: string, appId = newUuid<AppId>()): Promise<{ cause: string | undefined; lines: readonly string[] }> {
  const files = { 'package.json': JSON.stringify({ scripts: { build: `sh build.sh`, start: 'node -v' } }), 'build.sh': script };
  const { outcome, lines } = await buildToEnd(builds.builds, buildSpec(sourceOf(files), { appId }));
  return { cause: outcome.status === 'failed' ? outcome.cause : undefined, lines };
}

describe.runIf(process.getuid?.() === 0)('the code of a build', () => {
  it.each([
    ['one file', 'fallocate -l 200M /app/large'],
    ['many files', 'for n in 1 2 3 4 5 6 7 8 9 10 11 12; do fallocate -l 10M /tmp/$n || exit 1; done'],
    ['files at home', 'fallocate -l 200M ~/large'],
    ['more empty files than it may have', 'for n in $(seq 20000); do : > /tmp/$n || exit 1; done'],
  ])('takes no more disk space than its own, and hears what it may have: by %s', async (_, script) => {
    expect((await build(script)).cause).toMatch(/^The build needs more disk space or more files than it may have: 96 MiB/);
  });

  it('takes no more of the cache than that has, and the next build works', async () => {
    const appId = newUuid<AppId>();
    const { cause } = await build('fallocate -l 60M /cache/npm/one && fallocate -l 60M /cache/npm/two', appId);
    expect(cause).toBe('The build cache is full. Its largest parts were dropped: push again.');
    expect((await build('fallocate -l 60M /cache/npm/one', appId)).cause).toBeUndefined();
  });

  it('sees neither paths of the host nor other volumes', async () => {
    const { cause, lines } = await build('cat /proc/self/mountinfo; ls /proc/self/fd');
    expect(cause).toBeUndefined();
    expect(lines.join('\n')).toContain(' /app ');
    expect(lines.filter((line) => line.includes('paas-volumes') || line.includes('/volumes/'))).toEqual([]);
  });

  it('leaves nothing mounted', async () => {
    await expect
      .poll(async () => (await readFile('/proc/mounts', 'utf8')).split('\n').filter((line) => line.includes(builds.dataDir)))
      .toEqual([]);
    expect(await readdir(`${builds.dataDir}/builds`)).toEqual([]);
  });
});
