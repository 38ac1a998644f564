import { describe, expect, it } from 'vitest';
import { parseProcfile } from './procfile.ts';

describe('a Procfile', () => {
  it('declares types in its order, with everything after the colon as the command', () => {
    const { processes } = parseProcfile(
      'web: bundle exec puma -p $PORT # a: b\nworker_2:sleep 1\n\n# comment\nclock :  tick  \n',
    );
    expect(Object.entries(processes)).toEqual([
      ['web', 'bundle exec puma -p $PORT # a: b'],
      ['worker_2', 'sleep 1'],
      ['clock', 'tick'],
    ]);
  });

  it('may come from Windows, with a byte order mark and carriage returns', () => {
    expect(parseProcfile('\uFEFFweb: a\r\nworker: b\r\n')).toEqual({ processes: { web: 'a', worker: 'b' } });
  });

  it('keeps `release` apart from what is run for ever', () => {
    expect(parseProcfile('release: ./migrate\nweb: a')).toEqual({ processes: { web: 'a' }, releaseCommand: './migrate' });
  });

  it.each([
    ['web: a\n  ls -l', 'line 2'],
    ['web:', 'line 1'],
    ['we b: a', 'line 1'],
    ['../x: a', 'line 1'],
  ])('names the line that is no declaration: %j', (text, where) => {
    expect(() => parseProcfile(text)).toThrow(where);
  });

  it('names a type that is declared twice', () => {
    expect(() => parseProcfile('web: a\nweb: b')).toThrow('declares "web" twice (again on line 2)');
  });

  it('takes a type named like a property of objects for what it is', () => {
    expect(Object.keys(parseProcfile('constructor: a\n__proto__: b').processes)).toEqual(['constructor', '__proto__']);
  });

  it('may have a hundred process types, and commands that a program can be given', () => {
    const types = (count: number) => Array.from({ length: count }, (_, index) => `t${index}: a`).join('\n');
    expect(Object.keys(parseProcfile(types(100)).processes)).toHaveLength(100);
    expect(() => parseProcfile(types(101))).toThrow('more than 100 process types');
    expect(() => parseProcfile(`web: ${'a'.repeat(20_000)}`)).toThrow('line 1 has a command of more than 16384 characters');
  });
});
