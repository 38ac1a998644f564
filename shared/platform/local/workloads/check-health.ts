/** Whether an instance is ready for traffic: it accepts a connection on its port, or answers a path with a status below 500. */
import { request } from 'node:http';
import { connect } from 'node:net';

/** What is checked. */
export interface HealthCheck {
  /** IPv4 address of the instance. */
  address: string;
  port: number;
  /** Undefined: a TCP connect is enough. */
  path: string | undefined;
  /** Sent as Host with the request of `path`, since many frameworks refuse unknown hosts. */
  host: string;
}

/** `problem`: 'did not listen', 'answered 503 to GET /healthz'. */
export type HealthResult = { healthy: true } | { healthy: false; problem: string };

const attemptMilliseconds = 5000;

/** One attempt, which takes 5 s at most. Never rejects. */
export function checkHealth(check: HealthCheck, signal: AbortSignal): Promise<HealthResult> {
  return check.path === undefined ? connectOnce(check, signal) : requestOnce(check, check.path, signal);
}

function connectOnce({ address, port }: HealthCheck, signal: AbortSignal): Promise<HealthResult> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: address, signal, timeout: attemptMilliseconds });
    const end = (result: HealthResult): void => {
      socket.destroy();
      resolve(result);
    };
    socket.once('connect', () => end({ healthy: true }));
    socket.once('timeout', () => end({ healthy: false, problem: 'did not accept a connection' }));
    socket.once('error', () => end({ healthy: false, problem: 'did not listen' }));
  });
}

function requestOnce(check: HealthCheck, path: string, signal: AbortSignal): Promise<HealthResult> {
  return new Promise((resolve) => {
    const attempt = request({
      host: check.address,
      port: check.port,
      path,
      agent: false,
      timeout: attemptMilliseconds,
      signal,
      headers: { host: check.host, 'user-agent': 'paas-health' },
    });
    attempt.once('response', (response) => {
      const status = response.statusCode ?? 0;
      attempt.destroy();
      resolve(status < 500 ? { healthy: true } : { healthy: false, problem: `answered ${status} to GET ${path}` });
    });
    attempt.once('timeout', () => {
      attempt.destroy();
      resolve({ healthy: false, problem: `did not answer GET ${path} within ${attemptMilliseconds / 1000} s` });
    });
    attempt.on('error', () => resolve({ healthy: false, problem: 'did not listen' }));
    attempt.end();
  });
}
