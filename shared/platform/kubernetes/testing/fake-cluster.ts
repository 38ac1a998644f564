import { AppError } from '#shared/errors.ts';
import type {
  Cluster,
  ClusterEvent,
  ClusterObject,
  ObjectReference,
  PodContainer,
  Selection,
  TimedLine,
} from '../cluster/cluster.ts';
import { kindOf } from '../cluster/kinds.ts';

/** An API server in memory, of which a test sees every object. */
export interface FakeCluster extends Cluster {
  /** All objects, by `<Kind> <namespace>/<name>`, or `<Kind> <name>`. */
  readonly objects: ReadonlyMap<string, ClusterObject>;
  /** Kinds whose definition is not installed. */
  readonly missingKinds: Set<string>;
  /** Adds a line to what a container of a pod has printed. */
  printPodLog(pod: PodContainer, line: string): void;
  /** From now on deleted objects stay, with a `deletionTimestamp`, until the returned function is called. */
  holdDeletions(): () => void;
}

/**
 * Stores objects and nothing else: no validation, no admission, no controllers. An apply replaces the fields that it names
 * and keeps all others, of whichever owner.
 */
export function createFakeCluster(): FakeCluster {
  const objects = new Map<string, ClusterObject>();
  const watchers = new Set<(event: ClusterEvent) => void>();
  const missingKinds = new Set<string>();
  const logs = new Map<string, TimedLine[]>();
  let lastTime = 0n;
  const logOf = ({ namespace, name, container }: PodContainer): TimedLine[] => {
    const key = `${namespace}/${name}/${container}`;
    const known = logs.get(key) ?? [];
    logs.set(key, known);
    return known;
  };
  let printed = Promise.withResolvers<void>();
  let version = 0;
  let held = false;

  const keyOf = ({ kind, name, namespace }: ObjectReference): string =>
    `${kind.kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
  const keyOfObject = ({ apiVersion, kind, metadata: { name, namespace } }: ClusterObject): string =>
    keyOf({ kind: kindOf({ apiVersion, kind }), name, ...(namespace === undefined ? {} : { namespace }) });
  const selects = ({ kind, namespace, labels = {} }: Selection, object: ClusterObject): boolean =>
    object.kind === kind.kind &&
    (namespace === undefined || object.metadata.namespace === namespace) &&
    Object.entries(labels).every(([name, value]) => object.metadata.labels?.[name] === value);
  function store(object: ClusterObject, type: ClusterEvent['type']): ClusterObject {
    version += 1;
    const before = objects.get(keyOfObject(object))?.metadata;
    const metadata = {
      uid: crypto.randomUUID(),
      creationTimestamp: new Date().toISOString(),
      ...before,
      ...object.metadata,
      resourceVersion: String(version),
    };
    const stored = structuredClone({ ...object, metadata });
    if (type === 'DELETED') objects.delete(keyOfObject(object));
    else objects.set(keyOfObject(object), stored);
    for (const tell of watchers) tell({ type, object: stored });
    return stored;
  }

  return {
    objects,
    missingKinds,
    serves: async ({ kind }) => !missingKinds.has(kind),
    isAllowed: async () => true,
    async apply(object) {
      const before = objects.get(keyOfObject(object));
      return store((before === undefined ? object : merge(before, object)) as ClusterObject, before ? 'MODIFIED' : 'ADDED');
    },
    async create(object) {
      if (objects.has(keyOfObject(object))) return 'existed';
      store(object, 'ADDED');
      return 'created';
    },
    async patch(reference, change) {
      const before = objects.get(keyOf(reference));
      const { resourceVersion } = (change as { metadata?: { resourceVersion?: string } }).metadata ?? {};
      if (before !== undefined && resourceVersion !== undefined && resourceVersion !== before.metadata.resourceVersion)
        throw new AppError('conflict', `${keyOf(reference)} has changed.`);
      return before === undefined ? undefined : store(merge(before, change) as ClusterObject, 'MODIFIED');
    },
    read: async (reference) => objects.get(keyOf(reference)),
    list: async (selection) => [...objects.values()].filter((object) => selects(selection, object)),
    async delete(reference) {
      const object = objects.get(keyOf(reference));
      if (object === undefined || object.metadata.deletionTimestamp !== undefined) return false;
      if (held) store({ ...object, metadata: { ...object.metadata, deletionTimestamp: new Date().toISOString() } }, 'MODIFIED');
      else store(object, 'DELETED');
      return true;
    },
    async *watch(selection, signal, listed) {
      const queue: ClusterEvent[] = [];
      let wake = (): void => undefined;
      const tell = (event: ClusterEvent): void => {
        queue.push(event);
        wake();
      };
      watchers.add(tell);
      const leave = (): void => wake();
      signal.addEventListener('abort', leave);
      try {
        for (const object of [...objects.values()]) if (selects(selection, object)) yield { type: 'ADDED', object };
        listed?.();
        while (!signal.aborted) {
          const event = queue.shift();
          if (event === undefined) await new Promise<void>((resolve) => (wake = resolve));
          else if (selects(selection, event.object)) yield event;
        }
      } finally {
        watchers.delete(tell);
        signal.removeEventListener('abort', leave);
      }
    },
    readPodLog: async (pod, lines) => {
      const log = logOf(pod);
      const newest = log.slice(-lines).map(({ line }) => line);
      return newest.length === 0 ? undefined : `${newest.join('\n')}\n`;
    },
    async *streamPodLog(pod, follow, signal) {
      const log = logOf(pod);
      for (let at = 0; ; at += 1) {
        // As kwok does, and unlike a kubelet, it goes on when the container has ended.
        while (follow && at >= log.length) {
          signal.throwIfAborted();
          await Promise.race([printed.promise, untilAborted(signal)]);
        }
        const entry = log[at];
        if (entry === undefined) return;
        yield entry.line;
      }
    },
    async *readTimedLog(pod, { since, newest, previous }) {
      // No container of the fake ever ends.
      if (previous) return;
      const found = logOf(pod).filter(({ time }) => time >= since);
      yield* newest === undefined ? found : found.slice(-newest);
    },
    printPodLog(pod, line) {
      const now = BigInt(Date.now()) * 1_000_000n;
      lastTime = now > lastTime ? now : lastTime + 1n;
      logOf(pod).push({ time: lastTime, line });
      printed.resolve();
      printed = Promise.withResolvers();
    },
    holdDeletions() {
      held = true;
      return () => {
        held = false;
        for (const object of [...objects.values()]) if (object.metadata.deletionTimestamp !== undefined) store(object, 'DELETED');
      };
    },
  };
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** As a merge patch (RFC 7386): objects field by field, null removes, everything else is replaced. */
function merge(before: unknown, change: unknown): unknown {
  if (!isRecord(change)) return change;
  const result: Record<string, unknown> = isRecord(before) ? { ...before } : {};
  for (const [name, value] of Object.entries(change)) {
    if (value === null) delete result[name];
    else result[name] = merge(result[name], value);
  }
  return result;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
