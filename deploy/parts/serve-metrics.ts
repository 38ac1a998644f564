import { createServer } from 'node:http';
import { describePortTaken } from '#deploy/host/port-owner.ts';
import { StartError } from '#deploy/host/start-error.ts';
import { closeServer } from '#deploy/parts/close-server.ts';
import type { Lifetime } from '#deploy/parts/lifetime.ts';
import type { StartOptions } from '#deploy/parts/start-options.ts';
import type { PrometheusMetrics } from '#shared/metrics/prometheus-metrics.ts';

/**
 * Serves `GET /metrics` to a Prometheus on this machine: on loopback, apart from the entry points, since it is not public.
 * @throws StartError when the port is taken
 */
export async function serveMetrics(
  lifetime: Lifetime,
  metrics: Pick<PrometheusMetrics, 'contentType' | 'render'>,
  { settings, log }: Pick<StartOptions, 'settings' | 'log'>,
): Promise<void> {
  const server = createServer((request, response) => {
    if (request.url?.split('?')[0] !== '/metrics')
      return void response.writeHead(404).end('Not found. This port serves /metrics only.\n');
    if (request.method !== 'GET') return void response.writeHead(405, { Allow: 'GET' }).end();
    metrics.render().then(
      (text) => response.writeHead(200, { 'Content-Type': metrics.contentType }).end(text),
      (error: unknown) => {
        log.error('The metrics could not be rendered.', { error });
        response.writeHead(500).end();
      },
    );
  });
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(settings.metricsPort, '127.0.0.1', resolve);
    });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    throw new StartError(await describePortTaken(settings.metricsPort, 'PAAS_METRICS_PORT'));
  }
  lifetime.onEnd(() => closeServer(server));
}
