import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { BuildStartCount } from '#shared/core/builds/build-starts-store.ts';
import type { Log } from '#shared/log.ts';
import type { Metrics } from '#shared/metrics/metrics.ts';
import type { DiskSpace } from '#shared/platform/disk-space.ts';

export interface PrometheusMetrics extends Metrics {
  readonly contentType: string;
  /** All of it in the text format of Prometheus. What cannot be read just now is left out. */
  render(): Promise<string>;
}

export interface PrometheusMetricsOptions extends Partial<DiskSpace> {
  /** `pipeline` label of the builds that this platform starts. */
  pipeline: string;
  /** Of the whole platform, whichever process asks. */
  countBuildStarts(): Promise<readonly BuildStartCount[]>;
  log: Log;
}

const requestSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const packCounts = [2, 4, 8, 16, 32, 64, 128, 512, 2048];
const workSeconds = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 900];

/** The metrics of the platform itself, in a registry of their own. */
export function createPrometheusMetrics({
  pipeline,
  countBuildStarts,
  readDiskSpace,
  log,
}: PrometheusMetricsOptions): PrometheusMetrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const requests = new Histogram({
    name: 'paas_http_request_duration_seconds',
    help: 'Answers of the API, by route template.',
    labelNames: ['method', 'route', 'status'],
    buckets: requestSeconds,
    registers,
  });
  const pushes = new Histogram({
    name: 'paas_push_duration_seconds',
    help: 'Pushes from their last byte to their answer, builds that were waited for included.',
    labelNames: ['outcome'],
    buckets: workSeconds,
    registers,
  });
  const builds = new Histogram({
    name: 'paas_build_duration_seconds',
    help: 'Runs of builds.',
    labelNames: ['outcome'],
    buckets: workSeconds,
    registers,
  });
  const repacks = new Histogram({
    name: 'paas_git_repack_duration_seconds',
    help: "Joins of a repository's packs into one.",
    buckets: workSeconds,
    registers,
  });
  const repackedPacks = new Histogram({
    name: 'paas_git_repacked_packs',
    help: 'Packs that became one in a repack.',
    buckets: packCounts,
    registers,
  });
  const garbage = new Counter({
    name: 'paas_git_unreachable_objects_total',
    help: 'Objects that were found unreachable, and objects that were removed because they were so for long enough.',
    labelNames: ['event'],
    registers,
  });
  const jobs = new Histogram({
    name: 'paas_job_duration_seconds',
    help: 'Attempts at jobs.',
    labelNames: ['job', 'outcome'],
    buckets: workSeconds,
    registers,
  });
  new Counter({
    name: 'paas_build_start_total',
    help: 'Builds started since the platform exists, on all of its processes.',
    labelNames: ['cache_state', 'pipeline'],
    registers,
    async collect() {
      this.reset();
      try {
        const counts = await countBuildStarts();
        // A series that begins with its first event hides that event from rate().
        for (const cacheState of ['cold', 'warm']) this.inc({ cache_state: cacheState, pipeline }, 0);
        for (const { cacheState, pipeline: label, count } of counts)
          this.inc({ cache_state: cacheState, pipeline: label }, count);
      } catch (error) {
        log.warn('The build starts could not be counted.', { error });
      }
    },
  });

  new Gauge({
    name: 'paas_disk_bytes',
    help: 'Disk of the data directory: all of it, what is free, and what builds leave free.',
    labelNames: ['kind'],
    registers,
    async collect() {
      this.reset();
      const facts = await readDiskSpace?.().catch((error: unknown) =>
        log.warn('The free disk space could not be read.', { error }),
      );
      if (facts === undefined) return;
      this.set({ kind: 'total' }, facts.totalBytes);
      this.set({ kind: 'free' }, facts.freeBytes);
      this.set({ kind: 'reserve' }, facts.reserveBytes);
    },
  });

  return {
    contentType: registry.contentType,
    render: () => registry.metrics(),
    observeRequest: ({ method, route, status, seconds }) => requests.observe({ method, route, status: String(status) }, seconds),
    observePush: ({ outcome, seconds }) => pushes.observe({ outcome }, seconds),
    observeBuild: ({ outcome, seconds }) => builds.observe({ outcome }, seconds),
    observeRepack({ packs, seconds }) {
      repacks.observe(seconds);
      repackedPacks.observe(packs);
    },
    observeGarbage({ unreachable, removed }) {
      garbage.inc({ event: 'found' }, unreachable);
      garbage.inc({ event: 'removed' }, removed);
    },
    observeJob: ({ name, outcome, seconds }) => jobs.observe({ job: name, outcome }, seconds),
  };
}
