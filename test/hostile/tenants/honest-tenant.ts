import { nodeApp } from '#test/support/builds/sample-apps.ts';
import { holdLoad } from '#test/support/platform/load.ts';
import type { RunningPlatform } from '#test/support/platform/running-platform.ts';
import { createUser, visit } from '#test/support/platform/user.ts';

/** What a tenant notices who pushes and is visited. */
export interface Experience {
  pushes: number;
  /** Median from the start of the push until the new version is served. */
  pushSeconds: number;
  /** 99th percentile of an answer of the API. */
  apiMilliseconds: number;
  requests: number;
  failedRequests: number;
}

export interface HonestTenant {
  /** Pushes version after version, for as long as `goesOn`, with visitors and requests of the API meanwhile. */
  measure(goesOn: (rounds: number) => Promise<boolean>): Promise<Experience>;
  /** What is not as it was pushed or set. */
  findLosses(): Promise<string[]>;
  remove(): Promise<void>;
}

const appName = 'honest';
const apiEveryMilliseconds = 100;

export async function createHonestTenant(platform: RunningPlatform): Promise<HonestTenant> {
  const user = await createUser(platform, 'grace@example.com');
  const { push_url } = await user.createApp(appName);
  const copy = await user.createWorkingCopy(push_url, nodeApp('version 0'));
  const first = await copy.push();
  if (first.code !== 0) throw new Error(`The honest tenant's first push failed:\n${first.output}`);
  await user.api('PATCH', `/v1/apps/${appName}/config`, { KEPT: 'as it was set' });
  const commits: string[] = [];
  const failures: string[] = [];

  const visitHome = async (awaited: string): Promise<string> => {
    try {
      return (await visit(platform, appName)).body;
    } catch (error) {
      failures.push(`a visitor who waited for ${awaited}: ${String(error)}`);
      return '';
    }
  };

  const pushVersion = async (): Promise<number> => {
    const word = `version ${commits.length + 1}`;
    commits.push(await copy.commit(nodeApp(word)));
    const begun = performance.now();
    const pushed = await copy.push();
    if (pushed.code !== 0) failures.push(`push of ${word}: ${pushed.output.slice(-300)}`);
    while (pushed.code === 0 && (await visitHome(word)) !== word) {
      if (performance.now() - begun > 120_000) {
        failures.push(`${word} is not served`);
        break;
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return (performance.now() - begun) / 1000;
  };

  return {
    async measure(goesOn) {
      const visitors = holdLoad(platform, appName, 2);
      const pushes: number[] = [];
      const answers: number[] = [];
      let over = false;
      const asking = (async () => {
        while (!over) {
          const begun = performance.now();
          const asked = await user.ask('GET', `/v1/apps/${appName}`).then(
            ({ status }) => String(status),
            (error: unknown) => String(error),
          );
          answers.push(performance.now() - begun);
          if (asked !== '200') failures.push(`the API answered ${asked}`);
          await new Promise((resolve) => setTimeout(resolve, apiEveryMilliseconds));
        }
      })();
      while (await goesOn(pushes.length)) pushes.push(await pushVersion());
      over = true;
      await asking;
      const { outcomes } = await visitors.stop();
      const requests = Object.values(outcomes).reduce((sum, count) => sum + count, 0);
      return {
        pushes: pushes.length,
        pushSeconds: quantile(pushes, 0.5),
        apiMilliseconds: quantile(answers, 0.99),
        requests,
        failedRequests: requests - (outcomes['200'] ?? 0),
      };
    },
    async findLosses() {
      const losses = [...failures];
      const remote = await copy.git('ls-remote', 'paas', 'refs/heads/main');
      if (!remote.stdout.startsWith(commits.at(-1) ?? '')) losses.push(`main is ${remote.stdout.trim()}`);
      const history = await copy.git('fetch', '-q', 'paas', 'main');
      if (history.code !== 0) losses.push(`fetch: ${history.output}`);
      const config = await user.api<Record<string, string>>('GET', `/v1/apps/${appName}/config`);
      if (!JSON.stringify(config).includes('as it was set')) losses.push('its configuration');
      const releases = await user.api<{ commit: string | null }[]>('GET', `/v1/apps/${appName}/releases?limit=200`);
      const missing = commits.slice(-150).filter((commit) => !releases.some((release) => release.commit === commit));
      if (missing.length > 0) losses.push(`${missing.length} releases`);
      return losses;
    },
    remove: () => user.remove(),
  };
}

function quantile(values: readonly number[], at: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * at))] ?? Number.NaN;
}
