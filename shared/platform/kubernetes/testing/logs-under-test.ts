import type { AppId } from '#shared/ids.ts';
import type { AppLogsHarness } from '#shared/platform/contract/app-logs.ts';
import { createAppLogs } from '../logs/app-logs.ts';
import { connectLoki, type LokiSettings } from '../logs/loki.ts';

/** Logs in a Loki, into which this process pushes as the agent on a node does. */
export function openLogsUnderTest(settings: LokiSettings, stop: () => Promise<void>): AppLogsHarness {
  const loki = connectLoki(settings);
  const pods = new Map<AppId, Map<string, string>>();
  let last = 0n;
  const podOf = (appId: AppId, process: string): string => {
    const known = pods.get(appId) ?? new Map<string, string>();
    pods.set(appId, known);
    const pod = `app-${appId}-${process.replace('.', '-')}`;
    known.set(pod, process);
    return pod;
  };
  return {
    logs: createAppLogs({ store: loki, readInstanceNames: async (appId) => pods.get(appId) ?? new Map<string, string>() }),
    stop,
    async print(appId, process, releaseVersion, lines) {
      const labels = {
        app_id: appId,
        process: process.split('.')[0] ?? '',
        release: String(releaseVersion),
        pod: podOf(appId, process),
        stream: 'stdout',
      };
      await loki.push(
        lines.map((line) => {
          const now = BigInt(Date.now()) * 1_000_000n;
          last = now > last ? now : last + 1n;
          return { time: last, labels, line };
        }),
      );
    },
  };
}
