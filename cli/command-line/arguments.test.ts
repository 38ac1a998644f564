import { describe, expect, it } from 'vitest';
import { parseArguments } from '#cli/command-line/arguments.ts';

const flags = {
  app: { kind: 'string', short: 'a', value: 'NAME', summary: '' },
  num: { kind: 'integer', short: 'n', value: 'NUMBER', summary: '' },
  tail: { kind: 'boolean', short: 't', summary: '' },
  password: { kind: 'refused', reason: 'never.' },
} as const;
const none = { flags, args: {} };

describe('parseArguments', () => {
  it.each([
    { argv: ['-n', '5', '-t', '--app', 'hello'] },
    { argv: ['-tn5', '-a', 'hello'] },
    { argv: ['--num=5', '--tail', '--app=hello'] },
  ])('reads $argv alike', ({ argv }) => {
    expect(parseArguments(argv, none).flags).toEqual({ app: 'hello', num: 5, tail: true, password: undefined });
  });

  it('leaves missing flags undefined, and missing boolean flags false', () => {
    expect(parseArguments([], none).flags).toEqual({ app: undefined, num: undefined, tail: false, password: undefined });
  });

  it('takes everything after -- as arguments, also flags', () => {
    const { args } = parseArguments(['--', '-t', '--app'], { flags, args: { names: { kind: 'many', summary: '' } } });
    expect(args.names).toEqual(['-t', '--app']);
  });

  it('assigns arguments by position, and the rest to the last one', () => {
    const specs = { flags, args: { one: { kind: 'required', summary: '' }, rest: { kind: 'any', summary: '' } } } as const;
    expect(parseArguments(['a', '-t', 'b', 'c'], specs).args).toEqual({ one: 'a', rest: ['b', 'c'] });
    expect(parseArguments(['a'], specs).args).toEqual({ one: 'a', rest: [] });
  });

  it('takes a command line from its first word on, with all of its flags', () => {
    const specs = { flags, args: { command: { kind: 'command', summary: 'the command' } } } as const;
    const parse = (...argv: string[]) => parseArguments(argv, specs);
    expect(parse('-a', 'hello', 'npm', 'run', '-t', '--help', '--', 'x')).toMatchObject({
      flags: { app: 'hello', tail: false },
      args: { command: ['npm', 'run', '-t', '--help', '--', 'x'] },
    });
    expect(parse('-t', '--', '-x', 'y')).toMatchObject({ flags: { tail: true }, args: { command: ['-x', 'y'] } });
    expect(() => parse('-t')).toThrow(expect.objectContaining({ message: 'COMMAND is missing: the command.', exitCode: 2 }));
  });

  it.each([
    [['--tial'], 'Unknown flag --tial.'],
    [['-x'], 'Unknown flag -x.'],
    [['--__proto__=1'], 'Unknown flag --__proto__.'],
    [['--tail=yes'], '--tail does not take a value.'],
    [['--app'], '--app requires a value: --app NAME'],
    [['--app='], '--app requires a value: --app NAME'],
    [['-n', '-5'], '-n must be a positive whole number.'],
    [['-n', '0'], '-n must be a positive whole number.'],
    [['-n', '1e3'], '-n must be a positive whole number.'],
    [['--password=secret'], '--password is not supported: never.'],
    [['extra'], 'This command takes no arguments.'],
  ])('refuses %j', (argv, message) => {
    expect(() => parseArguments(argv, none)).toThrow(expect.objectContaining({ message, exitCode: 2 }));
  });

  it('names the argument that is missing', () => {
    expect(() => parseArguments([], { flags, args: { name: { kind: 'required', summary: 'the variable' } } })).toThrow(
      'NAME is missing: the variable.',
    );
  });

  it('suggests the flag that was probably meant', () => {
    expect(() => parseArguments(['--tial'], none)).toThrow(expect.objectContaining({ hint: 'Did you mean --tail?' }));
  });
});
