/** How an instance becomes ready for traffic: where it listens, and whether it answers. */
import type { Clock } from '#shared/clock.ts';
import type { WorkloadSpec } from '#shared/platform/workloads.ts';
import { type Listener, listensOn, readAllListeners, readListeners } from '../processes/listening-ports.ts';
import { readDescendants } from '../processes/process-identity.ts';
import type { SandboxRecord } from '../sandbox/sandbox-process.ts';
import { askInstance, checkHealth, type HealthResult, whereToAsk } from './check-health.ts';
import type { InstanceRecord } from './instance-store.ts';
import { findOtherPort, patienceWith } from './supervision.ts';

/** How often it is checked where an instance listens that is not up yet. */
const portPollMilliseconds = 500;
/** For how many times the usual patience a port that is not PORT may give no answer by HTTP. */
const answerPatience = 3;

/** An instance that is not up yet. */
export interface BootingInstance {
  readonly clock: Clock;
  readonly timings: {
    readonly wrongPortSeconds: number;
    readonly settleMilliseconds: number;
    readonly healthPollMilliseconds: number;
  };
  /** Undefined for one of a release that is not stored any more. */
  readonly spec: WorkloadSpec | undefined;
  readonly program: SandboxRecord;
  /** Ports that its image declares. */
  readonly exposedPorts: readonly number[];
  /** Its present record. */
  readRecord(): Readonly<InstanceRecord>;
  /** Makes PORT lead to another port of the instance. @param target undefined: to itself */
  leadPort(target: number | undefined): Promise<void>;
}

/** Where the processes of an instance listen. In a network of its own everything that listens belongs to it. */
export async function readInstanceListeners({ program, readRecord }: BootingInstance): Promise<readonly Listener[]> {
  const pids = await readProcesses(program);
  return readRecord().network === undefined ? readListeners(pids) : readAllListeners(pids);
}

/**
 * Aborts once the instance has listened on a wrong port for so long that it will not change. In a network of its own its PORT leads to the
 * port on which it listens instead, if there is no doubt which one that is.
 */
export function watchPort(instance: BootingInstance, over: AbortSignal): AbortSignal {
  const { clock, timings, spec, exposedPorts, readRecord } = instance;
  const missed = new AbortController();
  const checksPath = spec?.healthPath !== undefined;
  const watch = async (): Promise<void> => {
    let seen = '';
    let since = 0;
    for (;;) {
      await clock.sleep(portPollMilliseconds, over);
      const listeners = await readInstanceListeners(instance);
      const { port, target, network } = readRecord();
      const other = network === undefined ? undefined : findOtherPort(port, listeners, exposedPorts);
      if (target !== undefined && other === undefined) await instance.leadPort(undefined);
      const isNew = other !== undefined && other.port !== target;
      const patience = isNew
        ? other.patience
        : target === undefined
          ? patienceWith(port, listeners, checksPath)
          : checksPath
            ? undefined
            : answerPatience;
      const now = clock.now().getTime();
      const state = `${other?.port} ${target} ${patience}`;
      if (state !== seen) since = now;
      seen = state;
      if (patience === undefined || now - since < patience * timings.wrongPortSeconds * 1000) continue;
      if (!isNew) return missed.abort();
      await instance.leadPort(other.port);
    }
  };
  if (readRecord().port !== 0) void watch().catch(() => undefined);
  return missed.signal;
}

/** Resolves with undefined once it is ready for traffic, or with the last problem when the signal aborts. */
export async function becomeHealthy(instance: BootingInstance, signal: AbortSignal): Promise<string | undefined> {
  const { clock, timings, program, readRecord } = instance;
  let problem = 'did not listen';
  try {
    if (readRecord().port === 0) {
      await clock.sleep(timings.settleMilliseconds, signal);
      return undefined;
    }
    for (;;) {
      const result = await askWhetherReady(instance, signal);
      const { network, port } = readRecord();
      const isOwn = network !== undefined || !result.healthy || (await listensOn(await readProcesses(program), port)) !== false;
      if (result.healthy && isOwn) return undefined;
      if (!signal.aborted) problem = result.healthy ? 'did not listen on PORT, which another process uses,' : result.problem;
      await clock.sleep(timings.healthPollMilliseconds, signal);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    return problem;
  }
}

/** A connection is enough on PORT. Another port must speak HTTP, since nobody has said what it is for. */
async function askWhetherReady({ spec, readRecord }: BootingInstance, signal: AbortSignal): Promise<HealthResult> {
  const record = readRecord();
  const where = whereToAsk(record, spec);
  if (record.target === undefined || spec?.healthPath !== undefined)
    return checkHealth({ ...where, path: spec?.healthPath }, signal);
  const answer = await askInstance({ ...where, path: '/' }, signal);
  return typeof answer === 'number' ? { healthy: true } : { healthy: false, problem: 'did not listen' };
}

/** The processes of a program, those of the app first: the last one may be in the network of the host. */
async function readProcesses({ init }: SandboxRecord): Promise<readonly number[]> {
  return [...(await readDescendants(init.pid)), init.pid];
}
