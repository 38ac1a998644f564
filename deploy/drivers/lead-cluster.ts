import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { stoppedEarly } from '#deploy/host/wait-for.ts';
import type { Lifetime } from '#deploy/parts/lifetime.ts';
import type { StartOptions } from '#deploy/parts/start-options.ts';
import type { Cluster } from '#shared/platform/kubernetes/cluster/cluster.ts';
import { awaitLeadership } from '#shared/platform/kubernetes/leadership/await-leadership.ts';

const leaseName = 'paas-worker';

export interface LeadOptions extends Pick<StartOptions, 'log' | 'report'> {
  cluster: Cluster;
  /** Of the Lease. */
  namespace: string;
  stopping: AbortSignal;
}

/**
 * Resolves once this process leads, and lets another one lead at its end. When the Lease is lost the process ends at once, since another
 * one begins seconds later.
 * @throws StartError when it was asked to end before
 */
export async function leadCluster(lifetime: Lifetime, { cluster, namespace, stopping, log, report }: LeadOptions): Promise<void> {
  report(`-----> Waiting for the Lease ${leaseName} in the namespace ${namespace}.`);
  const holder = `${hostname()}-${randomUUID().slice(0, 8)}`;
  const leadership = await awaitLeadership({ cluster, namespace, name: leaseName, holder }, stopping).catch((error: unknown) => {
    if (stopping.aborted) throw stoppedEarly();
    throw error;
  });
  leadership.lost.addEventListener('abort', () => {
    log.error('The Lease was lost: another worker may lead now, so this one ends.', { lease: leaseName, namespace });
    process.exit(1);
  });
  lifetime.onEnd(() => leadership.release());
}
