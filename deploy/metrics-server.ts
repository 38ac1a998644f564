import { createServer } from 'node:http';
import { findPortOwner } from '#deploy/port-owner.ts';
import { StartError } from '#deploy/start-error.ts';
import type { Log } from '#shared/log.ts';
import type { PrometheusMetrics } from '#shared/metrics/prometheus-metrics.ts';

/**
 * `GET /metrics` for a Prometheus of this machine: on loopback, apart from the doors, since it is not the public's.
 * @returns what closes it
 * @throws StartError when the port is taken
 */
export async function serveMetrics(
  port: number,
  metrics: Pick<PrometheusMetrics, 'contentType' | 'render'>,
  log: Log,
): Promise<() => Promise<void>> {
  const server = createServer((request, response) => {
    if (request.url?.split('?')[0] !== '/metrics') return void response.writeHead(404).end('There is only /metrics here.\n');
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
      server.listen(port, '127.0.0.1', resolve);
    });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    const owner = await findPortOwner(port);
    const by = owner === undefined ? '' : ` (by pid ${owner.pid} ${owner.command})`;
    throw new StartError(`Port ${port} is taken${by}: set PAAS_METRICS_PORT to another.`);
  }
  return async () => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
  };
}
