import { describe, expect, it } from 'vitest';
import { parseAppCases } from '#test/apps/app-cases.ts';

describe('test.json of an example app', () => {
  it('may have comments and trailing commas, and // in strings', () => {
    const text = `[
      {
        // a comment, with a comma before the end
        "expectedOutput": "see https://example.com", /* another */
        "envs": { "A": "1", },
      },
    ]`;
    expect(parseAppCases(text, 'x64')).toMatchObject([{ expectedOutput: ['see https://example.com'], envs: { A: '1' } }]);
  });

  it('keeps a comma before a comment with brackets', () => {
    const text = '[{"envs": {"A": "1",\n// list[] of {names}\n"B": "2"}}]';
    expect(parseAppCases(text, 'x64')).toMatchObject([{ envs: { A: '1', B: '2' } }]);
  });

  it('asks for / and status 200 unless it says otherwise', () => {
    const [first, second] = parseAppCases(
      '[{"httpCheck": {"internalPort": 80}}, {"httpCheck": {"path": "/x", "expected": 404}}]',
      'x64',
    );
    expect(first?.httpCheck).toEqual({ path: '/', expected: 200, expectedOutput: [] });
    expect(second?.httpCheck).toMatchObject({ path: '/x', expected: 404 });
    expect(parseAppCases(undefined, 'x64')[0]?.httpCheck).toMatchObject({ path: '/', expected: 200 });
  });

  it('has no cases for other architectures', () => {
    const text =
      '[{"expectedOutput": "x86_64", "platform": "linux/amd64"}, {"expectedOutput": "a", "platform": "linux/arm64/v8"}]';
    expect(parseAppCases(text, 'x64').map(({ expectedOutput }) => expectedOutput)).toEqual([['x86_64']]);
    expect(parseAppCases(text, 'arm64').map(({ expectedOutput }) => expectedOutput)).toEqual([['a']]);
  });

  it('expects no version that the app asks for nowhere', () => {
    const text = '[{"expectedOutput": ["Hello (rustc 1.84.0)", "hello (rustc 1.59.0)"]}]';
    expect(parseAppCases(text, 'x64')[0]?.expectedOutput).toEqual(['Hello', 'hello (rustc 1.59.0)']);
  });

  it('is refused without the right types', () => {
    expect(() => parseAppCases('[{"expectedOutput": 7}]', 'x64')).toThrow();
  });
});
