import { describe, expect, it } from 'vitest';
import { isOwnRepository, parseGitUrl, spellingsOf } from '#shared/sources/git-url.ts';

function spellings(url: string): string[] {
  const parsed = parseGitUrl(url);
  return parsed === undefined ? [] : spellingsOf(parsed);
}

describe('a repository is the same', () => {
  const forms = [
    'https://git.example.com/ada/hello',
    'https://git.example.com/ada/hello.git',
    'https://git.example.com/ada/hello/',
    'https://git.example.com/ada/hello.git/',
    'git@git.example.com:ada/hello.git',
    'git@git.example.com:ada/hello',
    'ssh://git@git.example.com/ada/hello.git',
  ];
  it.each(forms)('in every form, given as %s', (given) => {
    for (const stored of forms) expect(spellings(given)).toContain(stored);
  });

  it('also on a port of its own, where SSH has another', () => {
    expect(spellings('http://localhost:3000/ada/hello.git')).toContain('http://localhost:3000/ada/hello');
    expect(spellings('ssh://git@localhost:2222/ada/hello')).toContain('ssh://git@localhost:2222/ada/hello.git/');
  });

  it.each(['https://git.example.com/ada/hell', 'https://example.com/ada/hello'])('and %s is another', (other) => {
    for (const form of forms) expect(spellings(other)).not.toContain(form);
  });
});

it.each([
  'file:///etc/passwd',
  'git://git.example.com/a',
  'https://ada:token@git.example.com/a',
  'https://token@git.example.com/a',
  'ssh://-oProxyCommand=x/a',
  'git@git.example.com:-upload-pack=x',
  "git@git.example.com:a'; touch /tmp/x;'",
  'https://git.example.com/a?x=1',
  'https://git.example.com/',
  'ext::sh -c x',
  '/srv/git/a.git',
  '',
])('%s is no address that is fetched from', (url) => {
  expect(parseGitUrl(url)).toBeUndefined();
});

it("knows the app's own repository, also after the port has changed", () => {
  expect(isOwnRepository('ssh://git@localhost:2200/hello.git', 'ssh://git@localhost:2222/hello.git')).toBe(true);
  expect(isOwnRepository('ssh://git@localhost:2222/other.git', 'ssh://git@localhost:2222/hello.git')).toBe(false);
});
