import { execFile } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const fixtures = globSync('test/fixtures/lint/**/*.ts', { cwd: root }).sort();

interface Diagnostic {
  /** Undefined for a directive that disables nothing. */
  code?: string;
  filename: string;
  labels: { span: { line: number } }[];
}

/** `line: rule`, in order. */
type Findings = readonly string[];

/** The lines that end with `// refused: <rule>` say what must be found there. */
function readExpected(file: string): Findings {
  const lines = readFileSync(`${root}/${file}`, 'utf8').split('\n');
  return lines.flatMap((line, index) => {
    const rule = /\/\/ refused: (\S+)$/.exec(line)?.[1];
    return rule === undefined ? [] : [`${index + 1}: ${rule}`];
  });
}

let found: ReadonlyMap<string, Findings>;

beforeAll(async () => {
  const run = promisify(execFile)(process.execPath, ['node_modules/oxlint/bin/oxlint', '-f', 'json', 'test/fixtures/lint'], {
    cwd: root,
    maxBuffer: 64 * 1024 * 1024,
  });
  // It exits with 1, for it finds something.
  const { stdout } = await run.catch((error: unknown) => error as { stdout: string });
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: Diagnostic[] };
  const byLine = diagnostics.toSorted((one, other) => (one.labels[0]?.span.line ?? 0) - (other.labels[0]?.span.line ?? 0));
  found = Map.groupBy(byLine, ({ filename }) => filename)
    .entries()
    .reduce(
      (all, [file, list]) =>
        all.set(
          file,
          list.map(({ code, labels }) => `${labels[0]?.span.line}: ${code ?? 'unused-directive'}`),
        ),
      new Map<string, Findings>(),
    );
});

describe('each rule fires where a fixture breaks it, and nowhere else', () => {
  test.each(fixtures)('%s', (file) => {
    expect(found.get(file) ?? []).toEqual(readExpected(file));
  });
});

test('every rule of this project has a fixture', async () => {
  const { default: config } = await import('../../oxlint.config.ts');
  const proven = new Set(fixtures.flatMap(readExpected).map((finding) => finding.replace(/^\d+: (.*)\((.*)\)$/, '$1/$2')));
  const wanted = Object.entries(config.rules).flatMap(([rule, level]) => (level === 'off' ? [] : [rule]));
  expect(wanted.filter((rule) => !proven.has(rule))).toEqual([]);
});

test("Node's types do not reach the rooms that run without Node", async () => {
  const run = promisify(execFile)(process.execPath, ['node_modules/typescript/lib/tsc.js', '-p', 'test/fixtures/edge'], {
    cwd: root,
  });
  const { stdout } = await run.catch((error: unknown) => error as { stdout: string });
  for (const name of ['process', 'Buffer', 'node:fs', '__dirname'])
    expect(stdout).toMatch(new RegExp(`Cannot find [a-z]+ '${name}'`));
  expect(stdout).not.toMatch(/crypto|TextEncoder|toBase64/);
});
