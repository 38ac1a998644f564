import { describe, expect, it } from 'vitest';
import { createBuildOutput, tameLine } from './build-output.ts';
import { createLineSplitter } from './local/logs/line-splitter.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('what a tool prints', () => {
  it.each([
    ['\u001b[31mred\u001b[0m and \u001b[1;4;38:5:2mmore\u001b[K', 'red and more'],
    ['\u001b]8;;http://a.example\u0007link\u001b]8;;\u0007', 'link'],
    ['\u001b]0;title\u001b\\done', 'done'],
    ['10%\r50%\r100%\r', '100%'],
    ['bell\u0007 null\u0000 del\u007f\u009b', 'bell null del'],
    ['\ttab stays', '\ttab stays'],
    ['\u001bc\u001b(Bplain', 'plain'],
  ])('reads as a terminal would show it in the end: %j', (raw, shown) => {
    expect(tameLine(raw)).toBe(shown);
  });

  it('does nothing to a terminal by the names of its files, which the platform prints', () => {
    const lines: string[] = [];
    const output = createBuildOutput((line) => lines.push(line), { logBytes: 1000, logLineBytes: 100 });
    output.detail('Left out a\u001b]0;title\u0007\nb\u009b2J');
    output.step('Detected \u001b[2J');
    expect(lines.join('')).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
  });

  it('is cut into lines wherever the chunks end, invalid UTF-8 replaced, long lines limited in bytes', () => {
    const lines: string[] = [];
    const output = createBuildOutput((line) => lines.push(line), { logBytes: 1_000_000, logLineBytes: 100 });
    const tool = createLineSplitter(output.tool);
    tool.push(bytes('one\ntw'));
    tool.push(bytes('o\n'));
    tool.push(new Uint8Array([0x61, 0xff, 0x62, 0x0a]));
    tool.push(bytes(`${'ü'.repeat(300)}\n`));
    tool.push(bytes('unfinished'));
    tool.end();
    expect(lines.slice(0, 3)).toEqual(['       one', '       two', '       a\uFFFDb']);
    expect(bytes(lines[3] ?? '').length).toBeLessThanOrEqual(100);
    expect(lines[3]).toMatch(/^ {7}ü+ …$/);
    expect(lines[4]).toBe('       unfinished');
  });

  it('ends with one notice when there is too much of it, while steps are still printed and the last lines are still kept', () => {
    const lines: string[] = [];
    const output = createBuildOutput((line) => lines.push(line), { logBytes: 1024, logLineBytes: 100 });
    const tool = createLineSplitter(output.tool);
    for (let index = 0; index < 1000; index++) tool.push(bytes(`line ${index}\n`));
    output.step('Next');
    expect(lines.length).toBeLessThan(100);
    expect(lines.filter((line) => line.includes('the rest is left out'))).toHaveLength(1);
    expect(lines.at(-1)).toBe('-----> Next');
    expect(output.tail().at(-1)).toBe('line 999');
  });
});
