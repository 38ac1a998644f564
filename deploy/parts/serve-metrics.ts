import { createServer, type Server } from 'node:http';
import { describePortTaken } from '#deploy/host/port-owner.ts';
import { StartError } from '#deploy/host/start-error.ts';
import { closeServer } from '#deploy/parts/close-server.ts';
import type { Lifetime } from '#deploy/parts/lifetime.ts';
import type { StartOptions } from '#deploy/parts/start-options.ts';
import type { PrometheusMetrics } from '#shared/metrics/prometheus-metrics.ts';

/** How many ports above PAAS_METRICS_PORT are for the processes beside the worker. */
const portsOfGuests = 32;

/**
 * Serves `GET /metrics` to a Prometheus on this machine: on loopback, apart from the entry points, since it is not public.
 * @param isGuest a process beside the worker: it takes the first free port above that of the worker
 * @returns the port
 * @throws StartError when the port is taken
 */
export async function serveMetrics(
  lifetime: Lifetime,
  metrics: Pick<PrometheusMetrics, 'contentType' | 'render'>,
  { settings, log }: Pick<StartOptions, 'settings' | 'log'>,
  isGuest = false,
): Promise<number> {
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
  const first = isGuest ? settings.metricsPort + 1 : settings.metricsPort;
  const port = await listenOnFirst(server, first, isGuest ? first + portsOfGuests : first);
  if (port === undefined) throw new StartError(await describePortTaken(first, 'PAAS_METRICS_PORT'));
  lifetime.onEnd(() => closeServer(server));
  return port;
}

/** The first free port from `first` to `last`, which the server listens on; undefined when all are taken. */
async function listenOnFirst(server: Server, first: number, last: number): Promise<number | undefined> {
  for (let port = first; port <= last; port += 1) {
    try {
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject);
        server.listen(port, '127.0.0.1', () => {
          server.off('error', reject);
          resolve();
        });
      });
      return port;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    }
  }
  return undefined;
}
