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

  it('leaves flags that are not given undefined, booleans false', () => {
    expect(parseArguments([], none).flags).toEqual({ app: undefined, num: undefined, tail: false, password: undefined });
  });

  it('takes what follows -- as arguments, whatever it looks like', () => {
    const { args } = parseArguments(['--', '-t', '--app'], { flags, args: { names: { kind: 'many', summary: '' } } });
    expect(args.names).toEqual(['-t', '--app']);
  });

  it('gives arguments by position, the last kind the rest', () => {
    const specs = { flags, args: { one: { kind: 'required', summary: '' }, rest: { kind: 'any', summary: '' } } } as const;
    expect(parseArguments(['a', '-t', 'b', 'c'], specs).args).toEqual({ one: 'a', rest: ['b', 'c'] });
    expect(parseArguments(['a'], specs).args).toEqual({ one: 'a', rest: [] });
  });

  it.each([
    [['--tial'], 'There is no flag --tial.'],
    [['-x'], 'There is no flag -x.'],
    [['--__proto__=1'], 'There is no flag --__proto__.'],
    [['--tail=yes'], '--tail takes no value.'],
    [['--app'], '--app needs a value: --app NAME'],
    [['--app='], '--app needs a value: --app NAME'],
    [['-n', '-5'], '-n must be a whole number, 1 or more.'],
    [['-n', '0'], '-n must be a whole number, 1 or more.'],
    [['-n', '1e3'], '-n must be a whole number, 1 or more.'],
    [['--password=secret'], '--password is not a flag: never.'],
    [['extra'], 'This command takes no argument.'],
  ])('refuses %j', (argv, message) => {
    expect(() => parseArguments(argv, none)).toThrow(expect.objectContaining({ message, exitCode: 2 }));
  });

  it('names a missing argument', () => {
    expect(() => parseArguments([], { flags, args: { name: { kind: 'required', summary: 'the variable' } } })).toThrow(
      'NAME is missing: the variable.',
    );
  });

  it('knows which flag a slip was meant to be', () => {
    expect(() => parseArguments(['--tial'], none)).toThrow(expect.objectContaining({ hint: 'Did you mean --tail?' }));
  });
});
