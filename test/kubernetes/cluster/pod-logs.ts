import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { ClusterObject, PodContainer } from '#shared/platform/kubernetes/cluster/cluster.ts';

/** What the containers of pods print: kwok reads a file for each. */
export interface PodLogs {
  /** The pod's logs, empty, and the volumes that its claims wait for. */
  prepare(pod: ClusterObject): Promise<void>;
  print(pod: PodContainer, line: string): Promise<void>;
  stop(): Promise<void>;
}

let last = 0n;

/** As runtimes write it; each line has a time of its own. */
function nextTime(): string {
  const now = BigInt(Date.now()) * 1_000_000n;
  last = now > last ? now : last + 1n;
  const fraction = String(last % 1_000_000_000n).padStart(9, '0');
  return `${new Date(Number(last / 1_000_000_000n) * 1000).toISOString().slice(0, 19)}.${fraction}Z`;
}

export async function openPodLogs(kubectl: (args: readonly string[], input?: string) => Promise<string>): Promise<PodLogs> {
  const directory = await mkdtemp(join(tmpdir(), 'pod-logs-'));
  const fileOf = ({ namespace, name, container }: PodContainer): string => join(directory, `${namespace}-${name}-${container}`);
  return {
    async prepare({ metadata: { name, namespace = '' }, spec }) {
      const { containers, volumes = [] } = spec as {
        containers: readonly { name: string }[];
        volumes?: readonly { persistentVolumeClaim?: { claimName: string } }[];
      };
      const logs = containers.map(({ name: container }) => ({
        containers: [container],
        logsFile: fileOf({ namespace, name, container }),
        follow: true,
      }));
      for (const { logsFile } of logs) await writeFile(logsFile, '');
      const claims = volumes.flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName ?? []);
      const objects = [
        { apiVersion: 'kwok.x-k8s.io/v1alpha1', kind: 'Logs', metadata: { name, namespace }, spec: { logs } },
        ...claims.map((claimName) => ({
          apiVersion: 'v1',
          kind: 'PersistentVolume',
          metadata: { name: claimName },
          spec: {
            storageClassName: 'standard',
            capacity: { storage: '5Gi' },
            accessModes: ['ReadWriteOnce'],
            hostPath: { path: directory },
            claimRef: { name: claimName, namespace },
          },
        })),
      ];
      await kubectl(['apply', '-f', '-'], objects.map((object) => stringify(object)).join('---\n'));
    },
    print: (pod, line) => appendFile(fileOf(pod), `${nextTime()} stdout F ${line}\n`),
    stop: () => rm(directory, { recursive: true }),
  };
}
