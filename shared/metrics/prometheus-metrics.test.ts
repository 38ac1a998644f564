import { describe, expect, it } from 'vitest';
import { createLog } from '#shared/log.ts';
import { createPrometheusMetrics } from '#shared/metrics/prometheus-metrics.ts';

const log = createLog('silent', () => undefined);

describe('the metrics of the platform', () => {
  it('show both cache states before there was any build', async () => {
    const metrics = createPrometheusMetrics({ pipeline: 'local', countBuildStarts: async () => [], log });
    const text = await metrics.render();
    expect(text).toContain('# TYPE paas_build_start_total counter');
    expect(text).toContain('paas_build_start_total{cache_state="cold",pipeline="local"} 0');
    expect(text).toContain('paas_build_start_total{cache_state="warm",pipeline="local"} 0');
  });

  it('show what was counted, other pipelines too, and do not add it up from one reading to the next', async () => {
    const counts = [
      { cacheState: 'cold' as const, pipeline: 'local', count: 3 },
      { cacheState: 'warm' as const, pipeline: 'tekton', count: 40 },
    ];
    const metrics = createPrometheusMetrics({ pipeline: 'local', countBuildStarts: async () => counts, log });
    await metrics.render();
    const text = await metrics.render();
    expect(text).toContain('paas_build_start_total{cache_state="cold",pipeline="local"} 3');
    expect(text).toContain('paas_build_start_total{cache_state="warm",pipeline="tekton"} 40');
  });

  it('leave the build starts out, and keep the rest, while the database is away', async () => {
    const countBuildStarts = () => Promise.reject(new Error('connection refused'));
    const text = await createPrometheusMetrics({ pipeline: 'local', countBuildStarts, log }).render();
    expect(text).not.toMatch(/^paas_build_start_total\{/m);
    expect(text).toContain('process_cpu_seconds_total');
  });

  it('show the disk of the data directory, and leave it out while it cannot be read', async () => {
    const countBuildStarts = async () => [];
    const facts = { totalBytes: 1000, freeBytes: 300, reserveBytes: 50, totalFiles: 10, freeFiles: 5 };
    const metrics = createPrometheusMetrics({ pipeline: 'local', countBuildStarts, readDiskSpace: async () => facts, log });
    expect(await metrics.render()).toMatch(
      /^paas_disk_bytes\{kind="total"\} 1000\npaas_disk_bytes\{kind="free"\} 300\npaas_disk_bytes\{kind="reserve"\} 50$/m,
    );
    const readDiskSpace = () => Promise.reject(new Error('no such directory'));
    const broken = createPrometheusMetrics({ pipeline: 'local', countBuildStarts, readDiskSpace, log });
    expect(await broken.render()).not.toMatch(/^paas_disk_bytes\{/m);
  });

  it('count requests, pushes, builds and jobs by how they ended', async () => {
    const metrics = createPrometheusMetrics({ pipeline: 'local', countBuildStarts: async () => [], log });
    metrics.observeRequest({ method: 'GET', route: '/v1/apps/:id', status: 404, seconds: 0.02 });
    metrics.observePush({ outcome: 'rejected', seconds: 3 });
    metrics.observeBuild({ outcome: 'failed', seconds: 3 });
    metrics.observeJob({ name: 'build', outcome: 'done', seconds: 3 });
    const text = await metrics.render();
    expect(text).toContain('paas_http_request_duration_seconds_count{method="GET",route="/v1/apps/:id",status="404"} 1');
    expect(text).toContain('paas_push_duration_seconds_count{outcome="rejected"} 1');
    expect(text).toContain('paas_build_duration_seconds_sum{outcome="failed"} 3');
    expect(text).toContain('paas_job_duration_seconds_count{job="build",outcome="done"} 1');
  });
});
