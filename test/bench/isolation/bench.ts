/**
 * Compares this checkout with another one, such as one from before a change of the isolation: npm run bench:isolation -- --other DIR
 *
 *   --other DIR    another checkout with its node_modules; without it, this one is compared with itself, which shows the noise
 *   --rounds N     rounds, in each of which both have a turn (5)
 *
 * Both platforms run at the same time, and the order alternates, so that other load falls on both. Ratios are medians of the ratios of each
 * round. On a busy machine processor time says more than time.
 */
import { parseArgs } from 'node:util';
import { type BenchApp, openBenchApp } from './bench-app.ts';

const { values: options } = parseArgs({ options: { other: { type: 'string' }, rounds: { type: 'string', default: '5' } } });
const rounds = Number(options.rounds);

const measures: Readonly<Record<string, (app: BenchApp, round: number) => Promise<Readonly<Record<string, number>>>>> = {
  requests: (app) => app.measureRequests(),
  'start of an instance': (app) => app.measureStart(),
  memory: (app) => app.measureMemory(),
  'push to live': (app, round) => app.measurePush(round),
};

const median = (values: readonly number[]): number =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;

const apps = new AsyncDisposableStack();
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void apps.disposeAsync().finally(() => process.exit(1)));
try {
  const here = await openBenchApp({});
  apps.defer(() => here.close());
  const other = await openBenchApp(options.other === undefined ? {} : { checkout: options.other });
  apps.defer(() => other.close());
  for (const [title, measure] of Object.entries(measures)) {
    const found: { here: Readonly<Record<string, number>>; other: Readonly<Record<string, number>> }[] = [];
    // The first round compiles code and fills caches.
    for (let round = -1; round < rounds; round += 1) {
      const first = round % 2 === 0 ? here : other;
      const firstResult = await measure(first, round);
      const secondResult = await measure(first === here ? other : here, round);
      if (round < 0) continue;
      found.push(first === here ? { here: firstResult, other: secondResult } : { here: secondResult, other: firstResult });
    }
    print(title, found);
  }
} finally {
  await apps.disposeAsync();
}

function print(
  title: string,
  found: readonly { here: Readonly<Record<string, number>>; other: Readonly<Record<string, number>> }[],
): void {
  process.stdout.write(`\n${title.padEnd(34)}${'other'.padStart(10)}${'here'.padStart(10)}${'ratio'.padStart(8)}\n`);
  for (const name of Object.keys(found[0]?.here ?? {})) {
    const of = (side: 'here' | 'other'): number => median(found.map((round) => round[side][name] ?? 0));
    const ratio = median(found.map(({ here, other }) => (here[name] ?? 0) / (other[name] ?? 1)));
    process.stdout.write(
      `  ${name.padEnd(32)}${of('other').toFixed(2).padStart(10)}${of('here').toFixed(2).padStart(10)}${ratio.toFixed(2).padStart(8)}\n`,
    );
  }
}
