import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fetch } from 'undici';
import { freePort } from '#test/support/servers/free-port.ts';
import { startClusterProcess } from './cluster-process.ts';

/** A Loki in one process, with tenants, whose compactor deletes what it is asked to. */
export async function startLoki(program: string): Promise<{ url: string; stop(): Promise<void> }> {
  const directory = await mkdtemp(join(tmpdir(), 'loki-'));
  const [http, grpc] = [await freePort(), await freePort()];
  const url = `http://127.0.0.1:${http}`;
  const settings = {
    auth_enabled: true,
    server: {
      http_listen_address: '127.0.0.1',
      http_listen_port: http,
      grpc_listen_address: '127.0.0.1',
      grpc_listen_port: grpc,
      log_level: 'warn',
    },
    common: {
      instance_addr: '127.0.0.1',
      path_prefix: directory,
      storage: { filesystem: { chunks_directory: join(directory, 'chunks'), rules_directory: join(directory, 'rules') } },
      replication_factor: 1,
      ring: { instance_addr: '127.0.0.1', kvstore: { store: 'inmemory' } },
    },
    schema_config: {
      configs: [
        {
          from: '2024-01-01',
          store: 'tsdb',
          object_store: 'filesystem',
          schema: 'v13',
          index: { prefix: 'index_', period: '24h' },
        },
      ],
    },
    compactor: {
      retention_enabled: true,
      delete_request_store: 'filesystem',
      delete_request_cancel_period: '0s',
      compaction_interval: '1s',
    },
    limits_config: { deletion_mode: 'filter-and-delete', ingestion_rate_mb: 100, ingestion_burst_size_mb: 100 },
    ingester: { lifecycler: { min_ready_duration: '0s' } },
    frontend: { address: '127.0.0.1' },
    analytics: { reporting_enabled: false },
  };
  // JSON is YAML.
  await writeFile(join(directory, 'loki.yaml'), JSON.stringify(settings));
  const loki = await startClusterProcess({
    name: 'loki',
    command: program,
    args: ['-config.file', join(directory, 'loki.yaml')],
    directory,
  });
  await loki.untilReady(async () => (await fetch(`${url}/ready`)).ok);
  // It is ready before its queriers have found each other, and a query waits for that.
  const query = `${url}/loki/api/v1/query_range?query=${encodeURIComponent('{app_id="none"}')}`;
  await loki.untilReady(async () => (await fetch(query, { headers: { 'x-scope-orgid': 'paas' } })).ok);
  return {
    url,
    async stop() {
      await loki.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
