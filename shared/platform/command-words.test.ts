import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { joinWords, splitWords } from './command-words.ts';

const asShell = (command: string): readonly string[] =>
  execFileSync('/bin/sh', ['-c', `printf '%s\\0' ${command}`], { encoding: 'utf8' })
    .split('\0')
    .slice(0, -1);

describe('words of a command line', () => {
  it.each([
    [['/server', '--port', '80']],
    [['sh', '-c', 'echo "$HOME" && exit']],
    [['a', "it's", '', ' ', '$x', '`id`', '\\', '*', 'ä', '\n', '"', '~', '#a']],
  ])('survive joining and splitting, as in a shell: %j', (words) => {
    const command = joinWords(words);
    expect(asShell(command)).toEqual(words);
    expect(splitWords(command)).toEqual(words);
  });

  it.each(['node server.js', `node  "a b"'c d'\\ e`, 'server --name=x', './run a,b:c'])('are those of a shell: %s', (command) => {
    expect(splitWords(command)).toEqual(asShell(command));
  });

  it.each([
    ...[
      'echo $PORT',
      'a && b',
      'a; b',
      'a | b',
      'a > b',
      'a &',
      'ls *',
      'ls ~',
      '(a)',
      'a `b`',
      'A=1 node x',
      'cd x',
      'exec node x',
    ],
    ...['"$A"', "'open", '"open', '{ a', 'a\nb', ''],
  ])('are left to a shell where it does more: %j', (command) => {
    expect(splitWords(command)).toBeUndefined();
  });
});
