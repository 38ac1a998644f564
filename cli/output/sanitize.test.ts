import { expect, it } from 'vitest';
import { logLine, oneLine } from '#cli/output/sanitize.ts';

it('untrusted text cannot move the cursor, set a title or break a line', () => {
  expect(oneLine('a\u001b[2Jb\u001b]0;title\u0007c\nd\re')).toBe('abc d e');
});

it.each([
  ['plain\tx', 'plain\tx'],
  ['\u001b[1;31mred', '\u001b[1;31mred\u001b[0m'],
  ['a\u001b[2J\u001b[?25lb', 'ab'],
  ['\u001b]0;title\u0007c', 'c'],
  ['\u001b]8;;http://x\u001b\\link', 'link'],
  ['\u001b]0;unended', ''],
  ['\u001bPq#0\u001b\\ok', 'ok'],
  ['a\u001bc\u001b(0b', 'ab'],
  ['\u009b2Jz', 'z'],
  ['a\rb\u0008', 'ab'],
])('the log line %j reaches a terminal as %j', (text, shown) => {
  expect(logLine(text)).toBe(shown);
});
