import type { V1ConfigMap } from '@kubernetes/client-node';
import { z } from 'zod';
import { AppError } from '#shared/errors.ts';
import type { AppId } from '#shared/ids.ts';
import { buildNamespace } from '#shared/names.ts';
import { parseJson } from '#shared/parse-json.ts';
import type { Cluster, ClusterObject } from '../cluster/cluster.ts';
import { kinds } from '../cluster/kinds.ts';
import { appLabels } from '../names.ts';

/** A line of the platform about an app. */
export interface PlatformLine {
  /** Nanoseconds since 1970. */
  time: bigint;
  line: string;
}

/** Together below the megabyte that a ConfigMap may have. */
const mostLines = 300;
const mostCharacters = 800;

const schema = z.array(z.tuple([z.string().regex(/^\d+$/), z.string()]));

/**
 * The newest lines of the platform about apps, where no Loki keeps them: a ConfigMap for each app. It is with the builds, since an
 * app may have none of its own objects yet, or none any more.
 */
export class PlatformLines {
  readonly #cluster: Cluster;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** Oldest first. */
  async read(appId: AppId): Promise<readonly PlatformLine[]> {
    return parseLines(await this.#cluster.read(referenceOf(appId)));
  }

  /** Each line gets a time of its own, behind all others. */
  async append(appId: AppId, added: readonly PlatformLine[]): Promise<void> {
    for (;;) {
      const found = await this.#cluster.read(referenceOf(appId));
      const lines = parseLines(found);
      for (const { time, line } of added) {
        const last = lines.at(-1)?.time ?? 0n;
        lines.push({ time: time > last ? time : last + 1n, line: line.slice(0, mostCharacters) });
      }
      if (await this.#write(appId, lines.slice(-mostLines), found)) return;
    }
  }

  /** False when there were none. */
  delete(appId: AppId): Promise<boolean> {
    return this.#cluster.delete(referenceOf(appId));
  }

  /** False when somebody else has written meanwhile. */
  async #write(appId: AppId, lines: readonly PlatformLine[], found: ClusterObject | undefined): Promise<boolean> {
    const planned = planLines(appId, lines);
    if (found === undefined) return (await this.#cluster.create(planned)) === 'created';
    const { resourceVersion } = found.metadata;
    try {
      const change = { metadata: { resourceVersion }, data: planned.data };
      return (await this.#cluster.patch(referenceOf(appId), change)) !== undefined;
    } catch (error) {
      if (error instanceof AppError && error.code === 'conflict') return false;
      throw error;
    }
  }
}

const referenceOf = (appId: AppId) => ({ kind: kinds.configMap, name: `app-${appId}-log`, namespace: buildNamespace });

function planLines(appId: AppId, lines: readonly PlatformLine[]): ClusterObject {
  const { name, namespace } = referenceOf(appId);
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace, labels: { ...appLabels(appId), 'paas-state': 'log' } },
    data: { lines: JSON.stringify(lines.map(({ time, line }) => [String(time), line])) },
  } satisfies V1ConfigMap;
}

/** Somebody may have edited them: what is not readable is left out. */
function parseLines(found: ClusterObject | undefined): PlatformLine[] {
  const content = parseJson(found?.data?.['lines'] ?? '[]');
  return (schema.safeParse(content).data ?? []).map(([time, line]) => ({ time: BigInt(time), line }));
}
