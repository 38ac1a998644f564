/** Whether an instance is ready for traffic: it accepts a connection on its port, or answers a path with a status below 500. */
import { request } from 'node:http';
import { connect } from 'node:net';
import { limits } from '#shared/limits.ts';
import type { WorkloadSpec } from '#shared/platform/workloads.ts';
import { addressOf, type InstanceRecord } from './instance-store.ts';

/** What is checked. */
export interface HealthCheck {
  /** IPv4 address of the instance. */
  address: string;
  port: number;
  /** Undefined: a TCP connect is enough. */
  path: string | undefined;
  /** Longest time for the answer. */
  timeoutSeconds: number;
  /** Sent as Host with the request of `path`, since many frameworks refuse unknown hosts. */
  host: string;
}

/** How an instance of a release is asked. @param spec undefined for one of a release that is not stored any more */
export function whereToAsk(
  record: Pick<InstanceRecord, 'address' | 'port'>,
  spec: Pick<WorkloadSpec, 'hosts' | 'healthTimeoutSeconds'> | undefined,
): Omit<HealthCheck, 'path'> {
  return {
    address: addressOf(record),
    port: record.port,
    host: spec?.hosts[0] ?? 'localhost',
    timeoutSeconds: spec?.healthTimeoutSeconds ?? limits.app.healthTimeoutSeconds.usual,
  };
}

/** `problem`: 'did not listen', 'answered 503 to GET /healthz'. */
export type HealthResult = { healthy: true } | { healthy: false; problem: string };

const notListening = 'did not listen';

/** One attempt. Never rejects. */
export function checkHealth(check: HealthCheck, signal: AbortSignal): Promise<HealthResult> {
  return check.path === undefined ? connectOnce(check, signal) : requestOnce(check, check.path, signal);
}

function connectOnce({ address, port, timeoutSeconds }: HealthCheck, signal: AbortSignal): Promise<HealthResult> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: address, signal, timeout: timeoutSeconds * 1000 });
    const end = (result: HealthResult): void => {
      socket.destroy();
      resolve(result);
    };
    socket.once('connect', () => end({ healthy: true }));
    socket.once('timeout', () => end({ healthy: false, problem: 'did not accept a connection' }));
    socket.once('error', () => end({ healthy: false, problem: notListening }));
  });
}

async function requestOnce(check: HealthCheck, path: string, signal: AbortSignal): Promise<HealthResult> {
  const answer = await askInstance({ ...check, path }, signal);
  if (answer === notListening) return { healthy: false, problem: answer };
  if (typeof answer === 'string') return { healthy: false, problem: `${answer} to GET ${path}` };
  return answer < 500 ? { healthy: true } : { healthy: false, problem: `answered ${answer} to GET ${path}` };
}

/** Asks an instance for a path. @returns the status, or why there is none: 'did not listen' */
export function askInstance(
  { address, port, path, host, timeoutSeconds }: HealthCheck & { path: string },
  signal: AbortSignal,
): Promise<number | string> {
  return new Promise((resolve) => {
    const attempt = request({
      host: address,
      port,
      path,
      agent: false,
      timeout: timeoutSeconds * 1000,
      signal,
      headers: { host, 'user-agent': 'paas-health' },
    });
    attempt.once('response', (response) => {
      attempt.destroy();
      resolve(response.statusCode ?? 0);
    });
    attempt.once('timeout', () => {
      attempt.destroy();
      resolve(`gave no answer within ${timeoutSeconds} s`);
    });
    attempt.on('error', ({ code }: NodeJS.ErrnoException) => resolve(isAccepted(code) ? 'gave no answer' : notListening));
    attempt.end();
  });
}

/** Whether the error of a request came after its connection was accepted: it was closed, or the answer is not HTTP. */
function isAccepted(code: string | undefined): boolean {
  return code === 'ECONNRESET' || code === 'EPIPE' || code?.startsWith('HPE_') === true;
}
