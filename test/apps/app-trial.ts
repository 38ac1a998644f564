/** Pushes one app to a platform twice, and judges what it answers or prints. */
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { removeTree } from '#shared/platform/local/disk/trees.ts';
import type { AppCase } from '#test/apps/app-cases.ts';
import { appDataPaths } from '#test/apps/app-data.ts';
import { attachServices } from '#test/apps/services.ts';
import type { RunningPlatform } from '#test/support/platform/running-platform.ts';
import { type AppAnswer, type User, visit } from '#test/support/platform/user.ts';

/** A row of the table. */
export interface AppResult {
  readonly name: string;
  /** What the build log says was detected: 'Node.js app (package.json)'. */
  readonly detected: string;
  /** Whether every case was as expected. */
  readonly passed: boolean;
  /** Seconds of the builds; the second one is of the same files. Undefined for one that failed. */
  readonly cold?: number | undefined;
  readonly warm?: number | undefined;
  readonly imageMebibytes?: number | undefined;
  /** Why it failed, or the last line of the build. */
  readonly lastLine: string;
}

export interface AppTrial {
  readonly platform: RunningPlatform;
  readonly user: User;
  readonly name: string;
  readonly directory: string;
  readonly cases: readonly AppCase[];
  /** For one push. */
  readonly seconds: number;
  /** Without the second push. */
  readonly once: boolean;
  /** Gets everything that the pushes print. */
  log(text: string): void;
}

interface BuildAnswer {
  readonly id: string;
  readonly status: string;
  readonly error: string | null;
  readonly cache_state: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
}

interface Pushed {
  readonly output: string;
  readonly build: BuildAnswer | undefined;
  readonly verdict: string | undefined;
}

/** Deletes the app and its files before it returns. */
export async function tryApp(trial: AppTrial): Promise<AppResult> {
  const { user, platform, cases } = trial;
  const app = await user.createApp(trial.name);
  try {
    await user.git(trial.directory, ['init', '-q', '-b', 'main']);
    await user.git(trial.directory, ['remote', 'add', 'paas', app.push_url]);
    return await pushAll(trial, app, cases);
  } finally {
    await user.ask('DELETE', `/v1/apps/${app.id}`);
    await waitUntil(async () => (await visit(platform, trial.name).catch(() => undefined))?.status === 404, 5);
    for (const path of appDataPaths(platform.dataDir, app.id)) await removeTree(path);
  }
}

async function pushAll(trial: AppTrial, app: AppAnswer, cases: readonly AppCase[]): Promise<AppResult> {
  const problems: string[] = [];
  let [first, warm]: (Pushed | undefined)[] = [];
  let environment: string | undefined;
  for (const [index, appCase] of cases.entries()) {
    const wanted = JSON.stringify([appCase.envs, appCase.configFile]);
    if (wanted !== environment || first === undefined) {
      await setVariables(trial, app, appCase);
      if (appCase.configFile !== undefined)
        await copyFile(join(trial.directory, appCase.configFile), join(trial.directory, 'railpack.json'));
      environment = wanted;
      const pushed = await push(trial, app, appCase);
      first ??= pushed;
      if (index === 0 && !trial.once && pushed.build?.status === 'succeeded')
        warm = await pushAgain(trial, app, appCase, pushed.build);
      const verdict = pushed.verdict ?? warm?.verdict;
      if (verdict !== undefined) problems.push(verdict);
    } else {
      const verdict = await judge(trial, appCase);
      if (verdict !== undefined) problems.push(verdict);
    }
    if (problems.length > 0) break;
  }
  const output = first?.output ?? '';
  const [, what = '–', why = ''] = /-----> (.*) detected \((.*)\)/.exec(output) ?? [];
  return {
    name: trial.name,
    detected: why === '' ? what : `${what} (${why})`,
    passed: problems.length === 0,
    cold: secondsOf(first?.build),
    warm: secondsOf(warm?.build),
    imageMebibytes: toNumber(/([\d.]+) MiB, sha256:/.exec(output)?.[1]),
    lastLine: problems[0] ?? lastLineOf(output.replace(/\n[^\n]*Storing the image[^]*/, '')),
  };
}

/** Undefined if nothing was built: the first push is not over when all that is expected was printed before. */
async function pushAgain(trial: AppTrial, app: AppAnswer, appCase: AppCase, { id }: BuildAnswer): Promise<Pushed | undefined> {
  let pushed: Pushed | undefined;
  await waitUntil(async () => {
    pushed = await push(trial, app, appCase);
    return pushed.build?.id !== id;
  }, trial.seconds);
  return pushed?.build?.id === id ? undefined : pushed;
}

async function setVariables(trial: AppTrial, app: AppAnswer, { envs }: AppCase): Promise<void> {
  const variables = await attachServices(trial.user, app, { directory: trial.directory, envs });
  await trial.user.api('PATCH', `/v1/apps/${app.id}/config`, variables);
}

/** Pushes until the case can be judged: that is when the push ends, or earlier once everything expected was printed. */
async function push(trial: AppTrial, app: AppAnswer, appCase: AppCase): Promise<Pushed> {
  const { user, directory } = trial;
  await user.git(directory, ['add', '-A', '-f']);
  await user.git(directory, ['commit', '-q', '--allow-empty', '-m', 'Push']);
  const ending = new AbortController();
  const limit = AbortSignal.timeout(trial.seconds * 1000);
  let output = '';
  const onOutput = (text: string): void => {
    output += text;
    trial.log(text);
  };
  const signal = AbortSignal.any([ending.signal, limit]);
  // It rejects when it is aborted, which is how some pushes end here.
  const pushing = user.git(directory, ['push', '-f', 'paas', 'main'], { signal, onOutput }).catch(() => undefined);
  const since = new Date().toISOString();
  let ended = false;
  void pushing.then(() => (ended = true));
  let verdict: string | undefined =
    appCase.httpCheck === undefined ? await watchOutput(trial, appCase, () => ended, since) : undefined;
  if (appCase.httpCheck === undefined) ending.abort();
  await pushing;
  const [build] = await user.api<BuildAnswer[]>('GET', `/v1/apps/${app.id}/builds?limit=1`);
  if (limit.aborted) {
    if (build !== undefined) await user.ask('POST', `/v1/apps/${app.id}/builds/${build.id}/cancel`);
    verdict = `not over after ${trial.seconds} s: ${lastLineOf(output)}`;
  } else if (build?.status === 'failed' || build === undefined) {
    verdict = appCase.shouldFail ? undefined : (build?.error ?? lastLineOf(output));
  } else if (appCase.httpCheck !== undefined) {
    const answered = await judge(trial, appCase);
    verdict = answered === undefined ? undefined : (failureOf(output) ?? answered);
  }
  return { output, build, verdict };
}

/** Undefined once everything expected was printed by the app. */
async function watchOutput(
  trial: AppTrial,
  { expectedOutput }: AppCase,
  ended: () => boolean,
  since: string,
): Promise<string | undefined> {
  let printed = '';
  for (let rounds = 0; rounds < 10; rounds += ended() ? 1 : 0) {
    const query = `lines=2000&since=${encodeURIComponent(since)}`;
    const entries = await trial.user.api<{ message: string }[]>('GET', `/v1/apps/${trial.name}/logs?${query}`);
    printed = entries.map(({ message }) => message).join('\n');
    if (expectedOutput.every((text) => printed.includes(text))) return undefined;
    await sleep(500);
  }
  const missing = expectedOutput.find((text) => !printed.includes(text));
  return `did not print "${missing}", but: ${lastLineOf(printed)}`;
}

async function judge(trial: AppTrial, { httpCheck, expectedOutput }: AppCase): Promise<string | undefined> {
  if (httpCheck === undefined) {
    const logged = await trial.user.api<{ message: string }[]>('GET', `/v1/apps/${trial.name}/logs?lines=2000`);
    const missing = expectedOutput.find((text) => !logged.some(({ message }) => message.includes(text)));
    return missing === undefined ? undefined : `did not print "${missing}"`;
  }
  let problem: string | undefined;
  await waitUntil(async () => {
    const { status, body } = await visit(trial.platform, trial.name, httpCheck.path).catch(() => ({ status: 0, body: '' }));
    const missing = httpCheck.expectedOutput.find((text) => !body.includes(text));
    if (status !== httpCheck.expected) problem = `GET ${httpCheck.path} answered ${status}, not ${httpCheck.expected}`;
    else problem = missing === undefined ? undefined : `GET ${httpCheck.path} answered without "${missing}"`;
    return problem === undefined;
  }, 5);
  return problem;
}

async function waitUntil(holds: () => Promise<boolean>, seconds: number): Promise<void> {
  const until = Date.now() + seconds * 1000;
  while (!(await holds()) && Date.now() < until) await sleep(200);
}

function secondsOf(build: BuildAnswer | undefined): number | undefined {
  if (build?.status !== 'succeeded' || build.started_at === null || build.finished_at === null) return undefined;
  return (Date.parse(build.finished_at) - Date.parse(build.started_at)) / 1000;
}

function toNumber(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text);
}

/** The platform's own words for why nothing was deployed. */
function failureOf(output: string): string | undefined {
  return /(?:was not rolled out|Push rejected|failed): (.*)/.exec(output)?.[1]?.trim();
}

function lastLineOf(text: string): string {
  const lines = text
    .split('\n')
    .map((line) =>
      line
        .replace(/^remote:\s*/, '')
        .replaceAll('\x1b[K', '')
        .trim(),
    )
    .filter((line) => line !== '' && !/^(To |\* |! \[|error: failed)/.test(line));
  return lines.at(-1) ?? '';
}
