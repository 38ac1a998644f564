import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeEach, describe, expect, it } from 'vitest';
import { atSmallPlatform } from '#cli/testing/at-small-platform.ts';

const run = promisify(execFile);
const at = atSmallPlatform();

describe('config variables', () => {
  beforeEach(async () => {
    await at.logIn();
    await at.paas(['create', 'hello']);
  });

  it('are set, listed, read and removed; config:set does not print values', async () => {
    const set = await at.paas(['config:set', '-a', 'hello', 'TOKEN=s3cret=value', 'EMPTY=']);
    expect(set.code).toBe(0);
    expect(set.stdout + set.stderr).not.toContain('s3cret');
    expect((await at.paas(['config', '-a', 'hello'])).stdout).toBe('EMPTY:\nTOKEN:  s3cret=value\n');
    expect((await at.paas(['config:get', '-a', 'hello', 'TOKEN'])).stdout).toBe('s3cret=value\n');
    await at.paas(['config:unset', '-a', 'hello', 'TOKEN']);
    expect((await at.paas(['config:get', '-a', 'hello', 'TOKEN'])).code).toBe(4);
  });

  it('are read from a file or standard input, which leaves them out of the shell history', async () => {
    await writeFile(join(at.person.home, 'env'), '# a comment\nONE=1\nTWO="a b"\n');
    await at.paas(['config:set', '-a', 'hello', '-f', 'env']);
    await at.paas(['config:set', '-a', 'hello', '-f', '-'], { input: 'THREE=3\n' });
    expect(at.platform.config).toEqual({ ONE: '1', TWO: 'a b', THREE: '3' });
  });

  it('are not in the error about a wrong argument', async () => {
    const { code, stderr } = await at.paas(['config:set', '-a', 'hello', 'ONE=1', 's3cret']);
    expect(code).toBe(2);
    expect(stderr).toContain('Argument 2');
    expect(stderr).not.toContain('s3cret');
    expect(at.platform.config).toEqual({});
  });

  it('are quoted for a shell', async () => {
    at.platform.config['ODD'] = "it's $HOME\nand more";
    const { stdout } = await at.paas(['config', '-s', '-a', 'hello']);
    const echoed = await run('sh', ['-c', `${stdout}printf %s "$ODD"`]);
    expect(echoed.stdout).toBe(at.platform.config['ODD']);
  });
});
