import type { AppId } from '#shared/ids.ts';
import type { DriftTarget } from '#shared/platform/drift.ts';
import type { ClusterEvent, ClusterObject, ObjectReference } from '../cluster/cluster.ts';
import { driftTarget } from './drift-target.ts';
import { fingerprint } from './fingerprint.ts';

interface Entry {
  target: DriftTarget;
  /** Of the object as the platform wants it: as it was written last, or as it was found. */
  wanted: string;
  /** Of the object as the cluster has reported it last. */
  seen: string;
}

/**
 * What the platform has on the cluster, a few hundred bytes for each object, and which of it somebody else has changed. Events and the
 * answers to the platform's own writes arrive in any order: whoever asks for drift waits a moment after a change.
 */
export class DriftIndex {
  readonly #entries = new Map<string, Entry>();
  /** Objects that the platform deletes. */
  readonly #leaving = new Set<string>();
  /** Namespaces that the platform deletes, with all that is in them. */
  readonly #leavingNamespaces = new Set<string>();
  /** Deleted by somebody else, and not reported yet. */
  readonly #missing = new Map<string, DriftTarget>();

  /**
   * Takes an event of a watch.
   * @returns the key to ask `takeDrift` for in a moment; undefined when nothing can have drifted
   */
  observe({ type, object }: ClusterEvent): string | undefined {
    const target = driftTarget(object);
    if (target === undefined) return undefined;
    const key = keyOfObject(object);
    if (type === 'DELETED') {
      this.#entries.delete(key);
      if (object.kind === 'Namespace' && this.#leavingNamespaces.delete(object.metadata.name)) return undefined;
      if (this.#leaving.delete(key) || this.#leavingNamespaces.has(object.metadata.namespace ?? '')) return undefined;
      this.#missing.set(key, target);
      return key;
    }
    const seen = fingerprint(object);
    const entry = this.#entries.get(key);
    this.#missing.delete(key);
    // What is being deleted is looked at once it is gone.
    if (object.metadata.deletionTimestamp !== undefined) return undefined;
    this.#entries.set(key, { target, wanted: entry?.wanted ?? seen, seen });
    return entry === undefined || entry.wanted === seen ? undefined : key;
  }

  /** Takes the answer to a write of the platform. */
  wrote(object: ClusterObject): void {
    const target = driftTarget(object);
    if (target === undefined) return;
    const key = keyOfObject(object);
    const wanted = fingerprint(object);
    this.#leaving.delete(key);
    this.#missing.delete(key);
    if (object.kind === 'Namespace') this.#leavingNamespaces.delete(object.metadata.name);
    this.#entries.set(key, { target, wanted, seen: this.#entries.get(key)?.seen ?? wanted });
  }

  /** The platform is about to delete the object. The result takes that back, for an object that was not there. */
  deletes({ kind, name, namespace }: ObjectReference): () => void {
    const key = keyOf(kind.kind, name, namespace);
    const isNew = !this.#leaving.has(key);
    this.#leaving.add(key);
    if (kind.kind === 'Namespace') this.#leavingNamespaces.add(name);
    return () => {
      if (isNew) this.#leaving.delete(key);
    };
  }

  /** Whose object differs, once: what is found now is wanted from then on, unless the platform writes it again. */
  takeDrift(key: string): DriftTarget | undefined {
    const missing = this.#missing.get(key);
    if (missing !== undefined) {
      this.#missing.delete(key);
      return missing;
    }
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.wanted === entry.seen) return undefined;
    entry.wanted = entry.seen;
    return entry.target;
  }

  listAppIds(): AppId[] {
    const ids = [...this.#entries.values()].flatMap(({ target }) => (target.of === 'app' ? target.appId : []));
    return [...new Set(ids)];
  }
}

const keyOf = (kind: string, name: string, namespace: string | undefined): string => `${kind} ${namespace ?? ''}/${name}`;
const keyOfObject = ({ kind, metadata: { name, namespace } }: ClusterObject): string => keyOf(kind, name, namespace);
