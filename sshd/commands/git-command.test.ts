import { describe, expect, test } from 'vitest';
import { parseGitCommand, parseGitProtocol } from './git-command.ts';

describe('parseGitCommand', () => {
  test.each([
    ["git-receive-pack 'hello.git'", 'receive-pack', 'hello'],
    ["git-upload-pack 'hello.git'", 'upload-pack', 'hello'],
    ["git receive-pack 'hello.git'", 'receive-pack', 'hello'],
    ["git-receive-pack '/hello.git'", 'receive-pack', 'hello'],
    ["git-receive-pack 'hello'", 'receive-pack', 'hello'],
    ["git-receive-pack 'hello.git/'", 'receive-pack', 'hello'],
    ['git-receive-pack hello.git', 'receive-pack', 'hello'],
    ["git-upload-pack 'a-b-2.git'", 'upload-pack', 'a-b-2'],
  ])('takes %s', (text, service, appName) => {
    expect(parseGitCommand(text)).toEqual({ service, appName });
  });

  test.each([
    '',
    'ls',
    'git-receive-pack',
    "git-receive-pack ''",
    "git-receive-pack '/'",
    "git-receive-pack '.git'",
    "git-receive-pack '~/hello.git'",
    "git-receive-pack '../hello.git'",
    "git-receive-pack 'a/b.git'",
    "git-receive-pack '//hello.git'",
    "git-receive-pack '-hello.git'",
    "git-receive-pack '--upload-pack=touch x'",
    "git-receive-pack 'hello.git' 'other.git'",
    "git-receive-pack 'hello.git'; touch /tmp/x",
    "git-receive-pack 'hello.git' && id",
    "git-receive-pack 'hello'\\''.git'",
    "git-receive-pack '$(id).git'",
    'git-receive-pack `id`.git',
    "git-receive-pack 'hello.git\n'",
    "git-receive-pack 'hello.git'\n",
    "git-receive-pack  'hello.git'",
    " git-receive-pack 'hello.git'",
    "GIT-RECEIVE-PACK 'hello.git'",
    "git-receive-pack 'hello\u0000.git'",
    "git-upload-archive 'hello.git'",
    `git-receive-pack '${'a'.repeat(101)}.git'`,
    `git-receive-pack '${'a'.repeat(100_000)}!'`,
  ])('refuses %j', (text) => {
    expect(parseGitCommand(text)).toBeUndefined();
  });
});

describe('parseGitProtocol', () => {
  test.each([
    ['version=2', 'version=2'],
    ['version=0', 'version=0'],
    ['version=1:version=2', 'version=2'],
    ['version=2:version=1', 'version=2'],
  ])('%s is %s', (value, expected) => {
    expect(parseGitProtocol(value)).toBe(expected);
  });

  test.each(['', 'version=3', 'version=22', 'version=2\n', 'version=2:', 'version=2:--option', 'x=version=2', ':version=2'])(
    'refuses %j',
    (value) => {
      expect(parseGitProtocol(value)).toBeUndefined();
    },
  );
});
