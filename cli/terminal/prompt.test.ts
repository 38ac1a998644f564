import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { atSmallPlatform } from '#cli/testing/at-small-platform.ts';
import { smallPlatformPassword } from '#cli/testing/small-platform.ts';

const at = atSmallPlatform();
const launcher = new URL('../paas', import.meta.url).pathname;

/** Runs `paas` on a terminal of its own (util-linux `script`) and types each answer once its question is there. */
async function onTerminal(args: string, answers: readonly (readonly [question: string, typed: string])[]) {
  const child = spawn('script', ['-qec', `${launcher} ${args}`, '/dev/null'], {
    cwd: at.person.home,
    env: { ...process.env, HOME: at.person.home, PAAS_API_URL: at.platform.host },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const waiting = [...answers];
  let seen = '';
  let answered = 0;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    seen += text;
    const [question, typed] = waiting[0] ?? [];
    if (question === undefined || typed === undefined) return;
    const at = seen.indexOf(question, answered);
    if (at === -1) return;
    answered = at + question.length;
    waiting.shift();
    child.stdin.write(typed);
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, seen };
}

describe('on a terminal', () => {
  it('login asks for the password, never shows it, and Backspace corrects it', async () => {
    const typed = `${smallPlatformPassword}xy\u007f\u007f\r`;
    const { code, seen } = await onTerminal('login', [
      ['Email: ', 'ada@example.com\r'],
      ['Password: ', typed],
    ]);
    expect(code).toBe(0);
    expect(seen).toContain('You are logged in');
    expect(seen).not.toContain('battery');
  });

  it('signup asks for the password twice, and creates no account when they differ', async () => {
    const { code, seen } = await onTerminal('signup -e ada@example.com', [
      ['Password: ', 'one password\r'],
      ['Password again: ', 'another password\r'],
    ]);
    expect(code).toBe(2);
    expect(seen).toContain('The two passwords are different.');
  });

  it('Ctrl-C at the password prompt ends with 130 and restores the terminal', async () => {
    const { seen } = await onTerminal('login -e ada@example.com; echo "code=$?"; stty -a', [['Password: ', 'sec\u0003']]);
    expect(seen).toContain('code=130');
    expect(seen).toMatch(/(?<!-)\becho\b/);
    expect(seen).not.toContain('sec');
  });

  it('destroy deletes an app when its name is typed', async () => {
    await at.logIn();
    await at.paas(['create', 'hello']);
    expect((await onTerminal('destroy -a hello', [['type its name: ', 'hello\r']])).code).toBe(0);
    expect((await at.paas(['apps', '--json'])).stdout).toBe('[]\n');
  });
});
