/** What the driver asks of a Kubernetes API server, in a form that a fake in memory can answer too. */
import type { Kind } from './kinds.ts';

/** An object as the API server has it: JSON, times as text. */
export interface ClusterObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMetadata;
  spec?: unknown;
  status?: unknown;
  /** Of RoleBindings. */
  roleRef?: unknown;
  subjects?: unknown;
  /** Of Secrets. */
  type?: string;
  /** Of Secrets in base64, of ConfigMaps as it is. */
  data?: Readonly<Record<string, string>>;
}

export interface ObjectMetadata {
  name: string;
  namespace?: string;
  labels?: Readonly<Record<string, string>>;
  annotations?: Readonly<Record<string, string>>;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  /** Set while the object is being deleted. */
  deletionTimestamp?: string;
  managedFields?: readonly ManagedFields[];
  ownerReferences?: { apiVersion: string; kind: string; name: string; uid: string }[];
}

/** Whose fields an object has. */
export interface ManagedFields {
  manager?: string;
  operation?: string;
  subresource?: string;
  apiVersion?: string;
  time?: string;
  fieldsType?: string;
  /** Names of fields, each with those in it: `{"f:spec": {"f:replicas": {}}}`. */
  fieldsV1?: FieldNames;
}

interface FieldNames {
  readonly [name: string]: FieldNames;
}

/** Names one object. */
export interface ObjectReference {
  kind: Kind;
  name: string;
  /** Left out for kinds without namespaces. */
  namespace?: string;
}

/** Names several objects of one kind. */
export interface Selection {
  kind: Kind;
  /** Left out: all namespaces. */
  namespace?: string;
  /** All of them must match. */
  labels?: Readonly<Record<string, string>>;
}

/** One change of what a selection selects. */
export interface ClusterEvent {
  type: 'ADDED' | 'MODIFIED' | 'DELETED';
  object: ClusterObject;
}

/**
 * The verbs. Each throws `AppError('internal')` with one sentence that names verb, object and what to do when the API server
 * refuses, or cannot be reached after a few attempts.
 */
export interface Cluster {
  /** Server-side apply: fields that an earlier apply set and this one leaves out are removed, those of others are kept. */
  apply(object: ClusterObject): Promise<ClusterObject>;
  /** 'existed' when there is one of the name, also one that is being deleted: it is left as it is. */
  create(object: ClusterObject): Promise<'created' | 'existed'>;
  /**
   * Merge patch. Undefined when there is no such object.
   * @throws AppError 'conflict' when the change names a `resourceVersion` that is not the object's any more
   */
  patch(reference: ObjectReference, change: object, subresource?: 'status'): Promise<ClusterObject | undefined>;
  read(reference: ObjectReference): Promise<ClusterObject | undefined>;
  list(selection: Selection): Promise<readonly ClusterObject[]>;
  /** Whether the cluster knows the kind: whether what defines it is installed. */
  serves(kind: Kind): Promise<boolean>;
  /** Whether the platform's account may do this, with one object or all of the kind: in the namespace, or in the whole cluster. */
  isAllowed(attempt: { verb: string; kind: Kind; name?: string; namespace?: string; subresource?: string }): Promise<boolean>;
  /**
   * Asks for the deletion; what the object owns goes after it. False when there is none, or when it is being deleted already:
   * of several calls at the same time one returns true.
   */
  delete(reference: ObjectReference): Promise<boolean>;
  /**
   * First the objects that there are, as `ADDED`, then each change. Ends with the signal. A connection that breaks is made
   * anew; what was missed comes then, a deletion as `DELETED` with the metadata of the object only.
   * @param listed called each time when all objects that there are have been reported
   * @throws AppError when the first list fails
   */
  watch(selection: Selection, signal: AbortSignal, listed?: () => void): AsyncIterable<ClusterEvent>;
  /** The newest lines that a pod's container has printed, oldest first; undefined when there is no such pod, or no output. */
  readPodLog(pod: PodContainer, lines: number): Promise<string | undefined>;
  /**
   * The whole lines that a pod's container has printed, from its first one; nothing when there is no such pod, or no output.
   * With `follow` it goes on with what comes, until the container or the connection ends; a line that is not whole by then is
   * left out. Throws the signal's reason when that aborts.
   */
  streamPodLog(pod: PodContainer, follow: boolean, signal: AbortSignal): AsyncIterable<string>;
  /** The lines that a pod's container has printed, oldest first, with their times; nothing when there is no such pod, or no output. */
  readTimedLog(pod: PodContainer, range: LogRange): AsyncIterable<TimedLine>;
}

/** Which lines of a container. */
export interface LogRange {
  /** Nanoseconds since 1970. Older lines of the same second may come, too. */
  since: bigint;
  /** No more than this many of the last lines; left out: all. */
  newest?: number;
  /** Of the container before this one, which has ended. */
  previous: boolean;
}

/** A line of a container. */
export interface TimedLine {
  /** Nanoseconds since 1970, by the clock of the node. */
  time: bigint;
  line: string;
}

/** A container of a pod. */
export interface PodContainer {
  namespace: string;
  name: string;
  container: string;
}
