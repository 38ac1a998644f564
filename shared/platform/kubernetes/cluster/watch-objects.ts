import type { AppError } from '#shared/errors.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';
import type { ApiRequests } from './api-requests.ts';
import { bodyLines } from './body-lines.ts';
import type { ClusterEvent, ClusterObject, Selection } from './cluster.ts';
import { listPages, readStatus } from './list-objects.ts';
import { collectionPath, labelSelector } from './object-path.ts';
import { pause } from './pause.ts';
import { refusal } from './refusals.ts';

/** The API server ends a watch after so long; the next one goes on where it ended. */
const watchSeconds = 240;
/** Silence for longer than bookmarks take means that the connection is dead. */
const silenceMilliseconds = 90_000;
const pauses = { firstMilliseconds: 200, lastMilliseconds: 10_000 };

interface WatchOptions {
  signal: AbortSignal;
  /** See `Cluster.watch`. */
  listed?: (() => void) | undefined;
}

/** See `Cluster.watch`. */
export async function* watchObjects(
  requests: ApiRequests,
  selection: Selection,
  { signal, listed }: WatchOptions,
): AsyncGenerator<ClusterEvent> {
  const known = new Map<string, ClusterObject>();
  let version: string | undefined;
  let hasListed = false;
  let hasWatched = false;
  let milliseconds = pauses.firstMilliseconds;
  while (!signal.aborted) {
    let hasFailed = false;
    try {
      if (version === undefined) {
        version = yield* listAnew(requests, selection, known);
        hasListed = true;
        listed?.();
      }
      for await (const { type, object } of openWatch(requests, selection, version, signal)) {
        // What has been missed is too old to be sent again: all is listed anew.
        if (type === 'ERROR') {
          version = undefined;
          hasFailed = true;
          break;
        }
        hasWatched = true;
        milliseconds = pauses.firstMilliseconds;
        version = object.metadata.resourceVersion ?? version;
        if (type !== 'BOOKMARK') yield remember(known, { type, object });
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!hasListed) throw error;
      hasFailed = true;
      // A watch that only broke goes on where it was; one that is refused later on may be of a version that nobody has any more.
      if (error instanceof RefusedWatch) {
        if (!hasWatched) throw error.reason;
        version = undefined;
      }
    }
    await pause(milliseconds * (0.5 + Math.random()), signal);
    if (hasFailed) milliseconds = Math.min(milliseconds * 2, pauses.lastMilliseconds);
  }
}

/** Lists everything, and reports what differs from what was known. Returns the version from which a watch goes on. */
async function* listAnew(
  requests: ApiRequests,
  selection: Selection,
  known: Map<string, ClusterObject>,
): AsyncGenerator<ClusterEvent, string> {
  const missing = new Map(known);
  let version = '';
  for await (const { items, resourceVersion } of listPages(requests, selection)) {
    version = resourceVersion;
    for (const object of items) {
      const before = known.get(keyOf(object));
      missing.delete(keyOf(object));
      if (before === undefined) yield remember(known, { type: 'ADDED', object });
      else if (before.metadata.resourceVersion !== object.metadata.resourceVersion)
        yield remember(known, { type: 'MODIFIED', object });
    }
  }
  for (const object of missing.values()) yield remember(known, { type: 'DELETED', object });
  return version;
}

class RefusedWatch extends Error {
  readonly reason: AppError;
  constructor(reason: AppError) {
    super(reason.message);
    this.reason = reason;
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
      throw new RefusedWatch(refusal({ verb: 'watch', ...selection }, response.status, await readStatus(response)));
    for await (const line of bodyLines(response.body)) {
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

function remember(known: Map<string, ClusterObject>, event: ClusterEvent): ClusterEvent {
  if (event.type === 'DELETED') known.delete(keyOf(event.object));
  else known.set(keyOf(event.object), identityOf(event.object));
  return event;
}

/** Thousands of objects are known at a time: only what says which object it was is kept of them. */
function identityOf({ apiVersion, kind, metadata }: ClusterObject): ClusterObject {
  const { name, namespace, labels, uid, resourceVersion, ownerReferences } = metadata;
  return { apiVersion, kind, metadata: omitUndefined({ name, namespace, labels, uid, resourceVersion, ownerReferences }) };
}

const keyOf = ({ metadata: { namespace, name } }: ClusterObject): string => `${namespace ?? ''}/${name}`;
