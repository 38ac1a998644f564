import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { atSmallPlatform } from '#cli/testing/at-small-platform.ts';

const run = promisify(execFile);
const at = atSmallPlatform();

describe('an SSH key', () => {
  async function makeKey(name = 'id_ed25519'): Promise<string> {
    await mkdir(join(at.person.home, '.ssh'), { recursive: true });
    const path = join(at.person.home, '.ssh', name);
    await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'ada@laptop', '-f', path]);
    return path;
  }

  it('is found in ~/.ssh and added with its comment as the name, and its fingerprint is that of ssh-keygen', async () => {
    const path = await makeKey();
    await at.logIn();
    const { code, stdout } = await at.paas(['keys:add']);
    expect(code).toBe(0);
    expect((await run('ssh-keygen', ['-lf', path])).stdout).toContain(stdout.trim());
    expect((await at.paas(['keys'])).stdout).toContain('ada@laptop');
  });

  it('can be added twice', async () => {
    await makeKey();
    await at.logIn();
    await at.paas(['keys:add']);
    const { code, stderr } = await at.paas(['keys:add']);
    expect(code).toBe(0);
    expect(stderr).toContain('already registered');
  });

  it('is not sent when it is a private key', async () => {
    const path = await makeKey();
    await at.logIn();
    const { code, stderr } = await at.paas(['keys:add', path]);
    expect(code).toBe(2);
    expect(stderr).toContain(`${path}.pub`);
  });

  it('that is missing: the error says how to create one', async () => {
    await at.logIn();
    const { code, stderr } = await at.paas(['keys:add']);
    expect(code).toBe(1);
    expect(stderr).toContain('ssh-keygen -t ed25519');
  });
});
