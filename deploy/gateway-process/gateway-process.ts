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

export interface GatewayProcess {
  readonly router: Router;
  /** Ends the gateway process and resolves when it is gone. Without this call it serves on after its starter's end. */
  stop(): Promise<void>;
  /** Looks after it no more, and lets it serve on. */
  leave(): Promise<void>;
}

/** Hosts other than the base URL's, under which this machine is known, lead to the API as well. */
export function gatewayOptions(settings: Settings, dataDir: string, otherHosts: readonly string[] = []): GatewayOptions {
  const base = new URL(settings.baseUrl).hostname.toLowerCase();
  return {
    dataDir,
    host: settings.host,
    httpPort: settings.httpPort,
    httpsPort: settings.httpsPort,
    apiHosts: [...new Set([base, 'localhost', ...otherHosts.map((host) => host.toLowerCase())])],
    appsDomain: settings.appsDomain,
  };
}

/**
 * Finds the gateway of this data directory, or starts it; one of other code or options is replaced. From then on a
 * gateway that ends by itself is started again.
 * @throws SettingsError when a port is taken; Error when it does not start for another reason
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

  let leaving = false;
  let watch = watchGateway(controlSocket);
  const keep = async (): Promise<void> => {
    for (let failures = 0; ; ) {
      await watch.gone;
      if (leaving) return;
      log.warn('the gateway has ended; starting it again');
      await sleep(Math.min(100 * 2 ** failures, 5000));
      if (leaving) return;
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
  const kept = keep();

  return {
    router: createGatewayRouter(controlSocket),
    async stop() {
      leaving = true;
      // A refusal means that it is gone already.
      await callGateway(controlSocket, { method: 'POST', path: '/stop', body: { drainSeconds: 5 } }).catch(() => undefined);
      await kept;
    },
    async leave() {
      leaving = true;
      watch.end();
      await kept;
    },
  };
}

/** Starts a gateway, which makes the one before it let go of the ports when it is ready itself. */
async function startProcess(options: GatewayOptions, version: string): Promise<void> {
  const files = gatewayFiles(options.dataDir);
  await mkdir(files.directory, { recursive: true, mode: 0o700 });
  const output = await open(files.log, 'a', 0o600);
  try {
    const child = spawn(process.execPath, [join(import.meta.dirname, '../gateway.ts'), JSON.stringify(options), version], {
      detached: true,
      cwd: '/',
      // Nothing of the control plane's environment: there are secrets in it.
      env: {},
      stdio: ['ignore', output.fd, output.fd, 'ipc'],
    });
    const start = await new Promise<GatewayStart>((resolve) => {
      child.once('message', (message) => resolve(message as GatewayStart));
      child.once('error', (error) => resolve({ outcome: 'failed', message: error.message }));
      child.once('exit', (code, signal) =>
        resolve({ outcome: 'failed', message: `it ended at once (${signal ?? `exit code ${code}`})` }),
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

/** `gone` resolves when the gateway process is gone, or was not there; or when the watch is ended. */
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
