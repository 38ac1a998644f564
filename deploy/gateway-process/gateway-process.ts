import { spawn } from 'node:child_process';
import { mkdir, open } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { GatewayStart } from '#deploy/gateway-process/gateway-start.ts';
import { readGatewayVersion } from '#deploy/gateway-process/gateway-version.ts';
import { describePortTaken } from '#deploy/host/port-owner.ts';
import type { GatewayIdentity } from '#gateway/control/control-server.ts';
import { type GatewayOptions, gatewayFiles } from '#gateway/gateway-options.ts';
import type { Log } from '#shared/log.ts';
import { reachableSocketPath } from '#shared/net/unix-socket.ts';
import { callGateway } from '#shared/routing/call-gateway.ts';
import { createGatewayRouter } from '#shared/routing/gateway-router.ts';
import type { Router } from '#shared/routing/router.ts';
import { type Settings, SettingsError } from '#shared/settings/settings.ts';

const stopRetryMilliseconds = 500;

/** The running gateway process of a data directory. */
export interface GatewayProcess {
  readonly router: Router;
  /** Ends the gateway process and resolves when it is gone. Without this call it keeps serving after this process ends. */
  stop(): Promise<void>;
  /** Stops supervising the gateway process, which keeps serving. */
  detach(): Promise<void>;
}

/**
 * The options of the gateway that follow from the settings.
 * @param dataDir absolute
 * @param otherHosts hosts of the API besides that of the base URL
 */
export function gatewayOptions(settings: Settings, dataDir: string, otherHosts: readonly string[] = []): GatewayOptions {
  const base = new URL(settings.baseUrl).hostname.toLowerCase();
  return {
    dataDir,
    host: settings.host,
    httpPort: settings.httpPort,
    httpsPort: settings.httpsPort,
    apiHosts: [...new Set([base, 'localhost', ...otherHosts.map((host) => host.toLowerCase())])],
    appsDomain: settings.appsDomain,
    trustedProxies: [...settings.trustedProxies],
    connectionsPerAddress: settings.connectionsPerAddress,
  };
}

/**
 * Finds the gateway process of the data directory, or starts one. A gateway with other code or options is replaced. A
 * gateway that ends by itself is started again until `stop` or `detach`.
 * @throws SettingsError when a port is taken, Error when the gateway does not start for another reason
 */
export async function ensureGateway(options: GatewayOptions, log: Log): Promise<GatewayProcess> {
  const { controlSocket } = gatewayFiles(options.dataDir);
  const version = await readGatewayVersion(join(import.meta.dirname, '../..'));
  const findOrStart = async (): Promise<void> => {
    const running = await readIdentity(controlSocket);
    const isCurrent = running !== undefined && running.version === version && isDeepStrictEqual(running.options, options);
    if (isCurrent) log.info('gateway found', { pid: running.pid });
    else await startProcess(options, version);
  };
  await findOrStart();

  let detached = false;
  let watch = watchGateway(controlSocket);
  const supervise = async (): Promise<void> => {
    for (let failures = 0; ; ) {
      await watch.gone;
      if (detached) return;
      log.warn('the gateway has ended and is started again');
      await sleep(Math.min(100 * 2 ** failures, 5000));
      if (detached) return;
      try {
        await findOrStart();
        failures = 0;
      } catch (error) {
        failures += 1;
        log.error('the gateway did not start', { error });
      }
      watch = watchGateway(controlSocket);
    }
  };
  const supervision = supervise();

  return {
    router: createGatewayRouter(controlSocket),
    async stop() {
      detached = true;
      let gone = false;
      const ended = supervision.then(() => {
        gone = true;
      });
      // A failed call means that the gateway has already ended, or that it can open no more files at the moment.
      while (!gone) {
        const call = callGateway(controlSocket, { method: 'POST', path: '/stop', body: { drainSeconds: 5 } });
        const asked = await call.then(
          () => true,
          () => false,
        );
        if (asked) break;
        await Promise.race([ended, sleep(stopRetryMilliseconds)]);
      }
      await ended;
    },
    async detach() {
      detached = true;
      watch.end();
      await supervision;
    },
  };
}

/** Starts a gateway process, which makes the running one close its ports as soon as it is ready itself. */
async function startProcess(options: GatewayOptions, version: string): Promise<void> {
  const files = gatewayFiles(options.dataDir);
  await mkdir(files.directory, { recursive: true, mode: 0o700 });
  const output = await open(files.log, 'a', 0o600);
  try {
    const child = spawn(process.execPath, [join(import.meta.dirname, '../gateway.ts'), JSON.stringify(options), version], {
      detached: true,
      cwd: '/',
      // Not the control plane's environment, which has secrets.
      env: {},
      stdio: ['ignore', output.fd, output.fd, 'ipc'],
    });
    const start = await new Promise<GatewayStart>((resolve) => {
      child.once('message', (message) => resolve(message as GatewayStart));
      child.once('error', (error) => resolve({ outcome: 'failed', message: error.message }));
      child.once('exit', (code, signal) =>
        resolve({ outcome: 'failed', message: `it ended during its start (${signal ?? `exit code ${code}`})` }),
      );
    });
    child.unref();
    if (start.outcome === 'serving') return;
    if (start.outcome === 'failed') throw new Error(`The gateway did not start: ${start.message}. Its log is ${files.log}.`);
    throw new SettingsError(await describePortTaken(start.port, start.setting));
  } finally {
    await output.close();
  }
}

async function readIdentity(controlSocket: string): Promise<GatewayIdentity | undefined> {
  try {
    return (await callGateway(controlSocket, { method: 'GET', path: '/identity' })) as GatewayIdentity;
  } catch {
    return undefined;
  }
}

/** `gone` resolves when there is no gateway process (any more), or after `end`. */
function watchGateway(controlSocket: string): { readonly gone: Promise<void>; end(): void } {
  const watch = httpRequest({ socketPath: reachableSocketPath(controlSocket), path: '/watch', agent: false });
  const gone = new Promise<void>((resolve) => {
    watch.once('response', (response) => response.on('error', () => undefined).resume());
    watch.once('error', () => resolve());
    watch.once('close', () => resolve());
  });
  watch.end();
  return { gone, end: () => watch.destroy() };
}
