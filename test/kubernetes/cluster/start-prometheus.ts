import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fetch } from 'undici';
import { freePort } from '#test/support/servers/free-port.ts';
import { listenOnLoopback } from '#test/support/servers/listen-on-loopback.ts';
import { startClusterProcess } from './cluster-process.ts';

/** Debian's package `prometheus` has it. */
export const prometheusProgram = process.env['PAAS_TEST_PROMETHEUS'] ?? 'prometheus';

export const hasPrometheus = spawnSync(prometheusProgram, ['--version']).status === 0;

/** A Prometheus that scrapes what `exposed` returns, each second. */
export async function startPrometheus(exposed: () => string): Promise<{ url: string; stop(): Promise<void> }> {
  const directory = await mkdtemp(join(tmpdir(), 'prometheus-'));
  const target = createServer((_, response) => response.end(exposed()));
  const listening = await listenOnLoopback(target);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const settings = {
    global: { scrape_interval: '1s' },
    scrape_configs: [
      {
        job_name: 'test',
        honor_labels: true,
        static_configs: [{ targets: [listening.host] }],
      },
    ],
  };
  await writeFile(join(directory, 'prometheus.yaml'), JSON.stringify(settings));
  const prometheus = await startClusterProcess({
    name: 'prometheus',
    command: prometheusProgram,
    args: [
      `--config.file=${join(directory, 'prometheus.yaml')}`,
      `--storage.tsdb.path=${join(directory, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    directory,
  });
  await prometheus.untilReady(async () => (await fetch(`${url}/-/ready`)).ok);
  return {
    url,
    async stop() {
      await prometheus.stop();
      await listening.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
