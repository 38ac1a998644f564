/**
 * `npm run test:apps -- --from REPOSITORY.git [--folder examples] [--results FILE] [--seconds N] [--again] [--once]
 * [--detect] [--verbose] [name…]`: pushes the apps in
 * the folders of a bare git repository to one platform, each twice, and judges them by their test.json. A name may have `*`.
 * Prints a table, and exits with 1 if an app failed. With `--results`, apps that the file has already are skipped (`--again`
 * tries those that failed), so a run can be continued; the table has all of the file. `--once` leaves out the second push, `--detect`
 * a Dockerfile, so that the language is detected beside one (Railpack's examples are to be judged so).
 */
import { appendFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ifMissing } from '#shared/files/if-missing.ts';
import { parseAppCases } from '#test/apps/app-cases.ts';
import { type AppResult, tryApp } from '#test/apps/app-trial.ts';
import { openExampleApps } from '#test/apps/example-apps.ts';
import { printTable, resultLine } from '#test/apps/result-table.ts';
import { type RunningPlatform, removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { createUser, type User } from '#test/support/platform/user.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    from: { type: 'string' },
    folder: { type: 'string', default: 'examples' },
    results: { type: 'string' },
    seconds: { type: 'string', default: '600' },
    again: { type: 'boolean', default: false },
    once: { type: 'boolean', default: false },
    detect: { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
  },
});
if (values.from === undefined) throw new Error('--from is missing: the path of a bare git repository with the apps.');
const examples = await openExampleApps(values.from, values.folder);
const results = new Map<string, AppResult>();
for (const line of (await readResults()).split('\n')) {
  if (line === '') continue;
  const result = JSON.parse(line) as AppResult;
  results.set(result.name, result);
}
const names = examples.names.filter(isWanted);
const ending = new AbortController();
process.once('SIGINT', () => ending.abort());
const directory = await mkdtemp(join(tmpdir(), 'paas-apps-'));
const platform = await startPlatform({ env: { PAAS_CANARY_STEP_SECONDS: '0' } });
try {
  for (const name of names) {
    if (ending.signal.aborted) break;
    const known = results.get(name);
    if (known !== undefined && !(values.again && !known.passed)) continue;
    const result = await tryExample(platform, name);
    results.set(name, result);
    console.log(resultLine(result));
    if (values.results !== undefined) await appendFile(values.results, `${JSON.stringify(result)}\n`);
  }
} finally {
  await removePlatform(platform);
  await rm(directory, { recursive: true, force: true });
}
const wanted = [...results.values()].filter(({ name }) => isWanted(name));
printTable(wanted);
process.exitCode = wanted.some(({ passed }) => !passed) ? 1 : 0;

/** By a user of its own: a session may be over before all apps have been tried. */
async function tryExample(platform: RunningPlatform, name: string): Promise<AppResult> {
  const files = join(directory, name);
  let user: User | undefined;
  try {
    user = await createUser(platform, `${name}@example.com`);
    const cases = parseAppCases(await examples.extract(name, files), process.arch);
    if (values.detect) await rm(join(files, 'Dockerfile'), { force: true });
    const log = (text: string): void => void (values.verbose && process.stderr.write(text));
    return await tryApp({
      platform,
      user,
      name,
      directory: files,
      cases,
      seconds: Number(values.seconds),
      once: values.once,
      log,
    });
  } catch (error) {
    return { name, detected: '–', passed: false, lastLine: error instanceof Error ? error.message : String(error) };
  } finally {
    await user?.remove();
    await rm(files, { recursive: true, force: true });
  }
}

async function readResults(): Promise<string> {
  return values.results === undefined ? '' : await readFile(values.results, 'utf8').catch(ifMissing(''));
}

function isWanted(name: string): boolean {
  const patterns = positionals.map((text) => new RegExp(`^${text.replaceAll(/[.+?]/g, '\\$&').replaceAll('*', '.*')}$`));
  return patterns.length === 0 || patterns.some((pattern) => pattern.test(name));
}
