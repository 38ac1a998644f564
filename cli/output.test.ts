import { describe, expect, it } from 'vitest';
import { keyValues, logLine, oneLine, painter, relativeTime, table } from '#cli/output.ts';

const terminal = { isTTY: true, write: () => true };
const pipe = { write: () => true };

describe('table', () => {
  it('aligns columns by what is seen, colours or not, and ends lines without blanks', () => {
    const paint = painter(terminal, {});
    const painted = table([
      [paint('red', 'failed'), 'x'],
      ['ok', 'longer'],
      ['é', ''],
    ]);
    expect(painted).toBe(`${paint('red', 'failed')}  x\nok      longer\né\n`);
  });

  it('of nothing is nothing', () => {
    expect(table([])).toBe('');
  });
});

it('pairs without a value are left out, empty ones stay', () => {
  expect(
    keyValues([
      ['Name', 'hello'],
      ['Source', null],
      ['Preview', undefined],
      ['Empty', ''],
    ]),
  ).toBe('Name:   hello\nEmpty:\n');
});

describe('colours', () => {
  it.each([
    ['a pipe', pipe, {}],
    ['a terminal with NO_COLOR', terminal, { NO_COLOR: '1' }],
    ['a dumb terminal', terminal, { TERM: 'dumb' }],
  ])('do not reach %s', (_, stream, env) => {
    expect(painter(stream, env)('red', 'text')).toBe('text');
  });

  it('reach a terminal, also with an empty NO_COLOR', () => {
    expect(painter(terminal, { NO_COLOR: '' })('red', 'text')).toBe('\u001b[31mtext\u001b[39m');
  });
});

it('text from elsewhere cannot move the cursor, set a title or break a line', () => {
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
])('of the log line %j a terminal sees %j', (text, shown) => {
  expect(logLine(text)).toBe(shown);
});

it.each([
  ['2026-03-01T12:00:00Z', 'just now'],
  ['2026-03-01T11:59:01Z', '59 s ago'],
  ['2026-03-01T11:01:00Z', '59 min ago'],
  ['2026-02-28T13:00:00Z', '23 h ago'],
  ['2026-01-30T12:00:00Z', '30 d ago'],
  ['2026-03-31T12:00:00Z', 'in 30 d'],
])('%s is told as %s', (time, words) => {
  expect(relativeTime(time, new Date('2026-03-01T12:00:00Z'))).toBe(words);
});
