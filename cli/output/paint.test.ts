import { describe, expect, it } from 'vitest';
import { painter } from '#cli/output/paint.ts';

const terminal = { isTTY: true, write: () => true };
const pipe = { write: () => true };

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
