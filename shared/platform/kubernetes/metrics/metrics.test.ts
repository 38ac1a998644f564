import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { metricKinds } from '#shared/platform/metrics.ts';
import { istioTraffic } from '#shared/platform/traffic-metrics.ts';
import { expectGolden } from '../testing/expect-golden.ts';
import { sampleIds } from '../testing/samples.ts';
import { planMetricQueries } from './metric-queries.ts';
import { connectPrometheus } from './prometheus.ts';
import { createPrometheusMetrics } from './series-metrics.ts';

const { appId } = sampleIds;

it('plans the queries of each kind as the golden file says', async () => {
  await expectGolden(
    'metric-queries',
    metricKinds.map((kind) => ({ [kind]: planMetricQueries({ appId, kind, stepSeconds: 60 }, istioTraffic) })),
  );
});

/** Answers each query with the same series, as the documentation of Prometheus shows it. */
async function open(values: readonly (readonly [number, string])[]) {
  const asked: URLSearchParams[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      asked.push(new URLSearchParams(Buffer.concat(await request.toArray()).toString()));
      const result = [{ metric: { label_process_type: 'worker' }, values }];
      response.end(JSON.stringify({ status: 'success', data: { resultType: 'matrix', result } }));
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const metrics = createPrometheusMetrics(
    connectPrometheus(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    istioTraffic,
  );
  return { metrics, asked, stop: () => server.close() };
}

it('names each step by its beginning, and leaves out those without a value', async () => {
  const { metrics, asked, stop } = await open([
    [1060, '0.5'],
    [1120, 'NaN'],
    [1180, '0.25'],
  ]);
  const [from, to] = [new Date(1000_000), new Date(1190_000)];
  expect(await metrics.readSeries({ appId, kind: 'cpu', from, to, stepSeconds: 60 })).toEqual([
    {
      labels: { process: 'worker' },
      points: [
        [from, 0.5],
        [new Date(1120_000), 0.25],
      ],
    },
  ]);
  expect(Object.fromEntries(asked[0] ?? [])).toMatchObject({ start: '1060', end: '1190', step: '60' });
  stop();
});

it('says that Prometheus does not answer', async () => {
  await expect(connectPrometheus('http://127.0.0.1:1').query('up')).rejects.toThrow(
    'Prometheus at http://127.0.0.1:1 does not answer',
  );
});
