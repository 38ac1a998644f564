import { once } from 'node:events';
import { beforeEach, describe, expect, it } from 'vitest';
import { atSmallPlatform } from '#cli/testing/at-small-platform.ts';

const at = atSmallPlatform();

describe('following', () => {
  beforeEach(async () => {
    await at.logIn();
    await at.paas(['create', 'hello']);
  });

  it('a build prints each line once although the connection breaks twice, and ends with the build', async () => {
    at.platform.buildLog = { lines: ['one', 'two', 'three', 'four'], breaksAfter: new Set([1, 3]), failed: false };
    const { code, stdout } = await at.paas(['builds:logs', '-a', 'hello']);
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'one\ntwo\nthree\nfour\n' });
  });

  it('a build that fails ends with code 1 and its cause', async () => {
    at.platform.buildLog = { lines: ['one'], breaksAfter: new Set(), failed: true };
    const { code, stderr } = await at.paas(['builds:logs', '-a', 'hello']);
    expect(code).toBe(1);
    expect(stderr).toContain('npm ci failed with exit code 1.');
  });

  const entry = (ms: number, process: string, message: string) => {
    const ts = new Date(Date.UTC(2026, 2, 1, 12, 0, 0, ms)).toISOString();
    return { ts, process, stream: 'stdout' as const, release_version: 1, message };
  };

  it('a log prints each entry once over broken connections, also equal and late ones, until Ctrl-C ends it with 130', async () => {
    const entries = [
      entry(5, 'web.1', 'same'),
      entry(5, 'web.1', 'same'),
      entry(4, 'web.2', 'late'),
      entry(5, 'web.1', 'same'),
      entry(9, 'web.1', 'last'),
    ];
    at.platform.appLog = {
      entries,
      breaksAfter: new Set([1, 2]),
    };
    const child = at.person.start(['logs', '-t', '-a', 'hello']);
    let stdout = '';
    let stderr = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    for await (const chunk of child.stdout ?? []) {
      stdout += String(chunk);
      if (stdout.includes('last\n')) child.kill('SIGINT');
    }
    if (child.exitCode === null) await once(child, 'exit');
    expect(stdout.split('\n').map((line) => line.split(' ').at(-1))).toEqual(['same', 'same', 'late', 'same', 'last', '']);
    expect(child.exitCode).toBe(130);
    expect(stderr).not.toContain('    at ');
  });

  it('ends without an error when its output is closed', async () => {
    at.platform.appLog = {
      entries: Array.from({ length: 5000 }, (_, index) => entry(index, 'web.1', `line ${index} ${'x'.repeat(100)}`)),
      breaksAfter: new Set(),
    };
    const child = at.person.start(['logs', '-n', '5000', '-a', 'hello']);
    let stderr = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    child.stdout?.once('data', () => child.stdout?.destroy());
    const [code] = (await once(child, 'exit')) as [number | null];
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });

  it('has no colours in a pipe', async () => {
    at.platform.appLog = { entries: [entry(1, 'web.1', 'plain')], breaksAfter: new Set() };
    const { stdout } = await at.paas(['logs', '-a', 'hello']);
    expect(stdout).toBe('2026-03-01T12:00:00.001Z web.1: plain\n');
  });
});
