/** What supervising an instance decides without side effects: its environment, and the message when it does not come up. */
import { workloadEnvironment } from '#shared/platform/workload-environment.ts';
import type { WorkloadSpec } from '#shared/platform/workloads.ts';
import { instanceName } from '../processes/instance-key.ts';
import type { Listener } from '../processes/listening-ports.ts';
import type { InstanceRecord } from './instance-store.ts';

/** The app's variables, and above them those that the platform sets. */
export function planEnvironment(
  spec: WorkloadSpec,
  record: Pick<InstanceRecord, 'key' | 'type' | 'index' | 'port'>,
): Record<string, string> {
  const name = instanceName(record);
  return {
    ...workloadEnvironment(spec),
    ...(record.port === 0 ? {} : { PORT: String(record.port) }),
    DYNO: name,
    PAAS_APP: spec.appName,
    PAAS_RELEASE: `v${spec.releaseVersion}`,
    PAAS_PROCESS: name,
    PAAS_INSTANCE: record.key,
  };
}

/** Ports that servers listen on unless they read PORT. */
const usualPorts = new Set([80, 1337, 3000, 3001, 4000, 4200, 4567, 5000, 5173, 8000, 8080, 8081, 8501, 8888, 9292]);

/** Ports of debuggers, JMX and metrics, which many apps open long before their own. */
function isSidePort(port: number): boolean {
  return port === 1099 || port === 5005 || (port >= 9000 && port <= 9999);
}

/**
 * Where an instance listens that does not listen on its PORT, if there is no doubt: on a port that its image declares, on the only one that
 * is not on the loopback and no side port, or on the only one of those that is usual for servers.
 * @param exposed ports that its image declares
 * @returns the port, and for how many times the usual patience it may change
 */
export function findOtherPort(
  port: number,
  listeners: readonly Listener[],
  exposed: readonly number[],
): { port: number; patience: number } | undefined {
  if (listeners.some((listener) => listener.port === port)) return undefined;
  const declared = exposed.find((candidate) => listeners.some((listener) => listener.port === candidate));
  if (declared !== undefined) return { port: declared, patience: 0 };
  const open = listeners.filter(({ address }) => !address.startsWith('127.'));
  const ports = [...new Set((open.length === 0 ? listeners : open).map((listener) => listener.port))];
  const servers = ports.filter((candidate) => !isSidePort(candidate));
  const usual = servers.filter((candidate) => usualPorts.has(candidate));
  const [only] = servers.length === 1 ? servers : usual.length === 1 ? usual : [];
  if (only === undefined) return undefined;
  return { port: only, patience: usual.length === 0 ? 3 : 1 };
}

/**
 * For how many times the usual patience an instance may listen as it does before it counts as one that does not come up: once where a
 * server listens that ignores PORT, or on PORT where no traffic arrives; three times on another port, which may be opened first.
 * Undefined while it may still come up.
 * @param checksPath whether it is up by its answer to a path, which may come late on the right port
 */
export function patienceWith(port: number, listeners: readonly Listener[], checksPath: boolean): 1 | 3 | undefined {
  const onPort = listeners.some((listener) => listener.port === port);
  if (onPort && checksPath) return undefined;
  const others = listeners.filter((listener) => listener.port !== port);
  if (onPort || others.some((listener) => usualPorts.has(listener.port))) return 1;
  return others.some((listener) => !isSidePort(listener.port)) ? 3 : undefined;
}

/** Why an instance that runs was not up in time, and what to change where the listeners show it. */
export function describeMissedBoot(problem: string, port: number, bootSeconds: number, listeners: readonly Listener[]): string {
  const others = [...new Set(listeners.map((listener) => listener.port))].filter((other) => other !== port);
  // One that listens on all addresses began to a moment ago.
  const here = listeners.find((listener) => listener.port === port && listener.address !== 'any');
  if (here !== undefined && problem === 'did not listen') {
    return `listens on ${here.address} only, where no traffic arrives; it must bind to 0.0.0.0`;
  }
  if (problem !== 'did not listen') return `${problem} within ${bootSeconds} s`;
  if (others.length > 0) {
    const where = `${others.length === 1 ? 'port' : 'ports'} ${others.join(', ')}`;
    return `listens on ${where}, not on PORT (${port}); it must bind to the port in the variable PORT`;
  }
  return `did not listen on PORT (${port}) within ${bootSeconds} s; it must bind to the port in the variable PORT`;
}
