import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { ampleQuotasSetting } from '#test/support/core/ample-quotas.ts';
import { platformRuntime } from '#test/support/platform/running-platform.ts';
import { freePort } from '#test/support/servers/free-port.ts';

const root = new URL('../../../', import.meta.url).pathname;

export type ProcessKind = 'api' | 'gateway' | 'sshd' | 'worker';

/** A process of one part of a platform. */
export interface PartProcess {
  readonly kind: ProcessKind;
  readonly pid: number;
  output(): string;
  /** Resolves once it has printed a line that begins so; rejects with all it printed when it ends before. */
  printed(beginning: string): Promise<void>;
  /** Resolves with its exit code once it has ended, or null after a signal that it did not handle. */
  readonly exited: Promise<number | null>;
  /** Resolves as `exited` does. */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

/** Settings that the processes of one platform share: its data directory, and ports of its own on the loopback. */
export async function settingsOfParts(dataDir: string): Promise<{ settings: Record<string, string>; httpPort: number }> {
  const httpPort = await freePort();
  const settings = {
    PAAS_DATA_DIR: dataDir,
    PAAS_HOST: '127.0.0.1',
    PAAS_HTTP_PORT: String(httpPort),
    PAAS_HTTPS_PORT: String(await freePort()),
    PAAS_SSH_PORT: String(await freePort()),
    PAAS_METRICS_PORT: String(await freePort()),
    PAAS_CANARY_STEP_SECONDS: '1',
    PAAS_QUOTAS: ampleQuotasSetting,
  };
  return { settings, httpPort };
}

/** Starts a process of one part with the settings; see `docs/processes.md`. */
export function startPart(kind: ProcessKind, settings: Record<string, string>): PartProcess {
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('PAAS_')));
  const child: ChildProcess = spawn(platformRuntime, [`deploy/processes/${kind}.ts`], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...inherited, ...settings },
  });
  const lines: string[] = [];
  const exited = once(child, 'exit') as Promise<[number | null]>;
  for (const stream of [child.stdout, child.stderr]) {
    if (stream !== null) createInterface({ input: stream }).on('line', (line) => lines.push(line));
  }
  const output = (): string => lines.join('\n');
  return {
    kind,
    pid: child.pid ?? 0,
    output,
    exited: exited.then(([code]) => code),
    printed: (beginning) =>
      new Promise((resolve, reject) => {
        const look = (): boolean => lines.some((line) => line.startsWith(beginning));
        const poll = setInterval(() => {
          if (!look()) return;
          clearInterval(poll);
          resolve();
        }, 20);
        void exited.then(([code]) => {
          clearInterval(poll);
          if (!look()) reject(new Error(`${kind} ended with ${code} before it printed '${beginning}':\n${output()}`));
        });
      }),
    async end(signal) {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      return (await exited)[0];
    },
  };
}
