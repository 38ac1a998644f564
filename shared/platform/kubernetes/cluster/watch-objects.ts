import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import type { ApiRequests } from './api-requests.ts';
import type { ClusterEvent, ClusterObject, Selection } from './cluster.ts';
import { listObjects, readStatus } from './list-objects.ts';
import { collectionPath, labelSelector } from './object-path.ts';
import { pause } from './pause.ts';
import { refusal } from './refusals.ts';

/** The API server ends a watch after so long; the next one goes on where it ended. */
const watchSeconds = 240;
/** Silence for longer than bookmarks take means that the connection is dead. */
const silenceMilliseconds = 90_000;
const pauses = { firstMilliseconds: 200, lastMilliseconds: 10_000 };

/** See `Cluster.watch`. */
export async function* watchObjects(
  requests: ApiRequests,
  selection: Selection,
  signal: AbortSignal,
): AsyncGenerator<ClusterEvent> {
  const known = new Map<string, ClusterObject>();
  let version: string | undefined;
  let milliseconds = pauses.firstMilliseconds;
  while (!signal.aborted) {
    try {
      if (version === undefined) {
        const { items, resourceVersion } = await listObjects(requests, selection);
        for (const event of compare(known, items)) yield remember(known, event);
        version = resourceVersion;
      }
      for await (const { type, object } of openWatch(requests, selection, version, signal)) {
        milliseconds = pauses.firstMilliseconds;
        // What has been missed is too old to be sent again: all is listed anew.
        if (type === 'ERROR') version = undefined;
        else version = object.metadata.resourceVersion ?? version;
        if (type !== 'ERROR' && type !== 'BOOKMARK') yield remember(known, { type, object });
        if (version === undefined) break;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (known.size === 0 && version === undefined) throw error;
      version = undefined;
    }
    await pause(milliseconds, signal);
    milliseconds = Math.min(milliseconds * 2, pauses.lastMilliseconds);
  }
}

interface WatchLine {
  type: ClusterEvent['type'] | 'BOOKMARK' | 'ERROR';
  object: ClusterObject;
}

async function* openWatch(
  requests: ApiRequests,
  selection: Selection,
  resourceVersion: string,
  signal: AbortSignal,
): AsyncGenerator<WatchLine> {
  const query = new URLSearchParams({
    watch: 'true',
    allowWatchBookmarks: 'true',
    timeoutSeconds: String(watchSeconds),
    resourceVersion,
  });
  if (selection.labels !== undefined) query.set('labelSelector', labelSelector(selection.labels));
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), silenceMilliseconds);
  try {
    const response = await requests.send(
      { method: 'GET', path: `${collectionPath(selection)}?${query.toString()}` },
      AbortSignal.any([signal, silence.signal]),
    );
    if (response.status === 410) return void (yield { type: 'ERROR', object: emptyObject });
    if (!response.ok || response.body === null)
      throw refusal({ verb: 'watch', ...selection }, response.status, await readStatus(response));
    for await (const line of createInterface({ input: Readable.fromWeb(response.body) })) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), silenceMilliseconds);
      yield JSON.parse(line) as WatchLine;
    }
  } finally {
    clearTimeout(timer);
    // Ends the request also when whoever reads this stops to.
    silence.abort();
  }
}

const emptyObject: ClusterObject = { apiVersion: '', kind: '', metadata: { name: '' } };

/** What has changed between what was known and what there is. */
function* compare(known: ReadonlyMap<string, ClusterObject>, items: readonly ClusterObject[]): Generator<ClusterEvent> {
  const names = new Set(items.map(keyOf));
  for (const [key, object] of [...known]) if (!names.has(key)) yield { type: 'DELETED', object };
  for (const object of items) {
    const before = known.get(keyOf(object));
    if (before === undefined) yield { type: 'ADDED', object };
    else if (before.metadata.resourceVersion !== object.metadata.resourceVersion) yield { type: 'MODIFIED', object };
  }
}

function remember(known: Map<string, ClusterObject>, event: ClusterEvent): ClusterEvent {
  if (event.type === 'DELETED') known.delete(keyOf(event.object));
  else known.set(keyOf(event.object), event.object);
  return event;
}

const keyOf = ({ metadata: { namespace, name } }: ClusterObject): string => `${namespace ?? ''}/${name}`;
