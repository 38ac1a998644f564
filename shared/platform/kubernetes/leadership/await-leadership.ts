import { AppError } from '#shared/errors.ts';
import type { Cluster, ClusterObject, ObjectReference } from '../cluster/cluster.ts';
import { kinds } from '../cluster/kinds.ts';
import { pause } from '../cluster/pause.ts';
import { isOutage } from '../cluster/refusals.ts';

/** How long a process leads without a word, and how often it says that it still does. */
export interface LeaseTimes {
  /** After so long without a renewal another process may lead. */
  durationSeconds: number;
  /** After so long without a renewal the leader must have stopped; less than `durationSeconds`. */
  deadlineSeconds: number;
  renewSeconds: number;
  /** Between two looks of those that wait. */
  lookSeconds: number;
}

/** A leader that is killed is replaced within 11 s: up to 1.5 until its last renewal is seen, 8 without another, 1.5 until the next look. */
const usualTimes: LeaseTimes = { durationSeconds: 8, deadlineSeconds: 6, renewSeconds: 2, lookSeconds: 1.5 };

/** What {@link awaitLeadership} needs. */
export interface LeaseOptions {
  cluster: Pick<Cluster, 'read' | 'create' | 'patch'>;
  namespace: string;
  /** Of the Lease: processes that contend for the same one. */
  name: string;
  /** Names this process among them, and no other one, also after a restart. */
  holder: string;
  times?: LeaseTimes;
}

/** Held by one process at a time. */
export interface Leadership {
  /** Aborts when the lease could not be renewed: whoever leads must stop at once, before another one begins. */
  readonly lost: AbortSignal;
  /** Lets another process lead at once. */
  release(): Promise<void>;
}

interface LeaseSpec {
  holderIdentity?: string;
  leaseDurationSeconds?: number;
  acquireTime?: string;
  renewTime?: string;
  leaseTransitions?: number;
}

/**
 * Waits until this process leads, by a Lease (coordination.k8s.io/v1) as the controllers of Kubernetes use it. Clocks of machines are not
 * compared: a lease is over when it has not changed for its duration, as seen from here. An API server that does not answer is waited for.
 * @throws the signal's reason when it aborts
 * @throws AppError when the API server refuses to show or to change the Lease
 */
export async function awaitLeadership(options: LeaseOptions, signal: AbortSignal): Promise<Leadership> {
  const { cluster, holder, times = usualTimes } = options;
  let seen: { text: string; at: number } | undefined;
  for (;;) {
    signal.throwIfAborted();
    const sentAt = performance.now();
    try {
      const found = await cluster.read(referenceOf(options));
      const spec = (found?.spec ?? {}) as LeaseSpec;
      const text = JSON.stringify(spec);
      if (seen?.text !== text) seen = { text, at: sentAt };
      const isOver = (spec.holderIdentity ?? '') === '' || performance.now() - seen.at > times.durationSeconds * 1000;
      if (found === undefined || isOver) {
        const takenAt = performance.now();
        const leaseTransitions = (spec.leaseTransitions ?? -1) + 1;
        const taken = { ...planSpec(holder, times), acquireTime: microTime(), leaseTransitions };
        if (await write(options, found, taken)) return lead(options, takenAt);
      }
    } catch (error) {
      if (!isOutage(error)) throw error;
    }
    await pause(times.lookSeconds * 1000, signal);
  }
}

/** False when somebody else was faster. */
async function write(options: LeaseOptions, found: ClusterObject | undefined, spec: LeaseSpec): Promise<boolean> {
  const { cluster, namespace, name } = options;
  const metadata = { name, namespace };
  if (found === undefined)
    return (await cluster.create({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec })) === 'created';
  const { resourceVersion } = found.metadata;
  try {
    return (await cluster.patch(referenceOf(options), { metadata: { resourceVersion }, spec })) !== undefined;
  } catch (error) {
    if (error instanceof AppError && error.code === 'conflict') return false;
    throw error;
  }
}

/** Renews the lease until it is released, or could not be renewed in time. @param takenAt when the request was sent that took it */
function lead(options: LeaseOptions, takenAt: number): Leadership {
  const { cluster, holder, times = usualTimes } = options;
  const over = new AbortController();
  const lost = new AbortController();
  const signal = AbortSignal.any([over.signal, lost.signal]);
  const untilDeadline = (from: number): NodeJS.Timeout =>
    setTimeout(() => lost.abort(), Math.max(0, from + times.deadlineSeconds * 1000 - performance.now()));
  let deadline = untilDeadline(takenAt);

  const renew = async (): Promise<void> => {
    const sentAt = performance.now();
    const found = await cluster.read(referenceOf(options));
    if (signal.aborted) return;
    // Somebody else leads: this process was stopped for longer than the lease lasts.
    if (((found?.spec ?? {}) as LeaseSpec).holderIdentity !== holder) lost.abort();
    else if (await write(options, found, planSpec(holder, times))) {
      clearTimeout(deadline);
      if (!signal.aborted) deadline = untilDeadline(sentAt);
    }
  };
  const renewing = (async () => {
    while (!signal.aborted) {
      await pause(times.renewSeconds * 1000, signal);
      // What fails is tried again until the deadline.
      if (!signal.aborted) await Promise.race([renew().catch(() => undefined), pause(times.deadlineSeconds * 1000, signal)]);
    }
  })();
  return {
    lost: lost.signal,
    async release() {
      over.abort();
      clearTimeout(deadline);
      await renewing;
      if (lost.signal.aborted) return;
      const found = await cluster.read(referenceOf(options)).catch(() => undefined);
      if (((found?.spec ?? {}) as LeaseSpec).holderIdentity !== holder) return;
      await write(options, found, { holderIdentity: '', leaseDurationSeconds: 1, renewTime: microTime() }).catch(() => undefined);
    },
  };
}

const referenceOf = ({ namespace, name }: LeaseOptions): ObjectReference => ({ kind: kinds.lease, name, namespace });

const planSpec = (holder: string, { durationSeconds }: LeaseTimes): LeaseSpec => ({
  holderIdentity: holder,
  leaseDurationSeconds: Math.max(1, Math.ceil(durationSeconds)),
  renewTime: microTime(),
});

/** Times of Leases have microseconds. */
const microTime = (): string => new Date().toISOString().replace('Z', '000Z');
