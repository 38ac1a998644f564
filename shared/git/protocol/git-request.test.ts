import { describe, expect, test } from 'vitest';
import { parseGitAddress, parseGitCommand, parseGitProtocol } from './git-request.ts';

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
  ])('parses %s', (text, service, appName) => {
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

describe('parseGitAddress', () => {
  const parse = (method: string, address: string) => parseGitAddress(method, new URL(address, 'http://localhost'));

  test.each([
    ['GET', '/hello.git/info/refs?service=git-upload-pack', { appName: 'hello', service: 'upload-pack', step: 'advertise' }],
    ['GET', '/a-2.git/info/refs?service=git-receive-pack&x=1', { appName: 'a-2', service: 'receive-pack', step: 'advertise' }],
    ['POST', '/hello.git/git-upload-pack', { appName: 'hello', service: 'upload-pack', step: 'serve' }],
    ['POST', '/hello.git/git-receive-pack', { appName: 'hello', service: 'receive-pack', step: 'serve' }],
  ])('takes %s %s', (method, address, expected) => {
    expect(parse(method, address)).toEqual(expected);
  });

  test.each([
    ['POST', '/hello.git/info/refs?service=git-upload-pack'],
    ['GET', '/hello.git/git-upload-pack'],
    ['PUT', '/hello.git/git-receive-pack'],
    ['GET', '/hello.git/info/refs'],
    ['GET', '/hello.git/info/refs?service=upload-pack'],
    ['GET', '/hello.git/info/refs?service=git-upload-archive'],
    ['GET', '/hello.git/HEAD'],
    ['GET', '/hello/info/refs?service=git-upload-pack'],
    ['GET', '/a/b.git/info/refs?service=git-upload-pack'],
    ['POST', '/-hello.git/git-upload-pack'],
    ['POST', '/hello.git/git-upload-pack/'],
    ['POST', `/${'a'.repeat(101)}.git/git-upload-pack`],
  ])('refuses %s %s', (method, address) => {
    expect(parse(method, address)).toBeUndefined();
  });
});

describe('parseGitProtocol', () => {
  test.each([
    ['version=2', 'version=2'],
    ['version=0', 'version=0'],
    ['version=1:version=2', 'version=2'],
    ['version=2:version=1', 'version=2'],
  ])('reads %s as %s', (value, expected) => {
    expect(parseGitProtocol(value)).toBe(expected);
  });

  test.each(['', 'version=3', 'version=22', 'version=2\n', 'version=2:', 'version=2:--option', 'x=version=2', ':version=2'])(
    'refuses %j',
    (value) => {
      expect(parseGitProtocol(value)).toBeUndefined();
    },
  );
});
