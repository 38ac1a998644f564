import { beforeEach, describe, expect, it } from 'vitest';
import { atSmallPlatform } from '#cli/testing/at-small-platform.ts';

const at = atSmallPlatform();

describe('run', () => {
  beforeEach(async () => {
    await at.logIn();
    await at.paas(['create', 'hello']);
  });

  it('prints what the command prints, sends its input, and exits as it does', async () => {
    const { code, stdout, stderr } = await at.paas(['run', '-a', 'hello', 'rake', '--trace', 'db: x'], { input: 'dump' });
    expect([code, stdout, stderr]).toEqual([42, 'DUMP', 'warning\n']);
    expect(at.platform.runs).toEqual([{ request: { command: ['rake', '--trace', 'db: x'], input: true }, input: 'dump' }]);
  });

  it('passes one word on as a shell command line, and reads no input when it shall not', async () => {
    const { code, stdout } = await at.paas(['run', '-n', '-a', 'hello', 'echo $HOME'], { input: 'dump' });
    expect([code, stdout]).toEqual([42, '']);
    expect(at.platform.runs).toEqual([{ request: { command: 'echo $HOME', input: false }, input: '' }]);
  });

  it('shows its own help before the command only', async () => {
    expect((await at.paas(['run', '--help'])).stdout).toContain('run a one-off command'.replace('run', 'Run'));
    expect((await at.paas(['run', '-n', '-a', 'hello', 'npm', '--help'])).code).toBe(42);
  });

  it('reports that the command was ended when the connection is lost', async () => {
    const { code, stderr } = await at.paas(['run', '-n', '-a', 'hello', 'lost']);
    expect(code).toBe(1);
    expect(stderr).toContain('The connection was lost, and the command was ended.');
  });
});
