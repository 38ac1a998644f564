/**
 * How long a push takes until the first visitor, and until every visitor has the new release, and how many requests fail meanwhile.
 * Visitors come from many loopback addresses at a steady rate. Usage: `npm run bench:live [-- RATE…]`, requests a second (2 10 100).
 */
import { request } from 'node:http';
import { nodeApp } from '#test/support/builds/sample-apps.ts';
import { type RunningPlatform, removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { createUser } from '#test/support/platform/user.ts';

const rates = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [2, 10, 100];
const pushes = 3;
const appName = 'live';
/** Visitors that still get the old release this long after the last one that did count as none. */
const settleMilliseconds = 3000;

interface Answer {
  /** Since the start, in milliseconds. */
  at: number;
  /** The body; '' for a request that failed. */
  body: string;
}

function ask({ httpPort: port }: RunningPlatform, visitor: number): Promise<string> {
  return new Promise((resolve) => {
    const localAddress = `127.1.${Math.floor(visitor / 250) % 250}.${(visitor % 250) + 1}`;
    const headers = { host: `${appName}.apps.localhost` };
    const asked = request({ host: '127.0.0.1', port, headers, localAddress, agent: false, timeout: 30_000 }, (answer) => {
      let body = '';
      answer.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      answer.on('error', () => resolve('')).on('end', () => resolve(answer.statusCode === 200 ? body : ''));
    });
    asked
      .on('timeout', () => asked.destroy())
      .on('error', () => resolve(''))
      .end();
  });
}

/** Asks at a steady rate, whether or not earlier requests were answered. */
function holdVisitors(platform: RunningPlatform, rate: number) {
  const answers: Answer[] = [];
  const start = performance.now();
  let visitor = 0;
  const timer = setInterval(() => {
    visitor += 1;
    void ask(platform, visitor).then((body) => answers.push({ at: performance.now() - start, body }));
  }, 1000 / rate);
  return { answers, now: () => performance.now() - start, stop: () => clearInterval(timer) };
}

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const platform = await startPlatform({ env: { PAAS_CANARY_STEP_SECONDS: '1', PAAS_LOG_LEVEL: 'warn' } });
const user = await createUser(platform);
try {
  const { push_url } = await user.createApp(appName);
  const copy = await user.createWorkingCopy(push_url, nodeApp('v0'));
  await copy.push();
  console.log('requests/s | first new (s) | all new (s) | push (s) | requests | failed');
  let version = 0;
  for (const rate of rates) {
    for (let count = 0; count < pushes; count += 1) {
      version += 1;
      await copy.commit(nodeApp(`v${version}`));
      const visitors = holdVisitors(platform, rate);
      await sleep(settleMilliseconds);
      const begun = visitors.now();
      const { code, output } = await copy.push();
      const pushed = visitors.now();
      if (code !== 0) throw new Error(output);
      await sleep(settleMilliseconds);
      visitors.stop();
      await sleep(500);
      const isNew = ({ body }: Answer): boolean => body === `v${version}`;
      const firstNew = visitors.answers.find(isNew)?.at ?? Number.NaN;
      const lastOld = visitors.answers.findLast(({ body }) => body === `v${version - 1}`)?.at ?? begun;
      const allNew = visitors.answers.find((answer) => answer.at > lastOld && isNew(answer))?.at ?? Number.NaN;
      const failed = visitors.answers.filter(({ body }) => body === '').length;
      const seconds = (at: number): string => ((at - begun) / 1000).toFixed(1);
      const cells = [rate, seconds(firstNew), seconds(allNew), seconds(pushed), visitors.answers.length, failed];
      console.log(cells.join(' | '));
    }
  }
} finally {
  await user.remove();
  await removePlatform(platform);
}
