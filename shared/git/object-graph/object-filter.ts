import type { ObjectType } from '#shared/git/objects/object-type.ts';

/** Which objects a partial clone leaves out (git-rev-list(1), `--filter`). */
export type ObjectFilter =
  /** Nothing is left out. */
  | { kind: 'none' }
  /** Blobs of at least so many bytes are left out. */
  | { kind: 'blob-limit'; bytes: number }
  /** Objects at least so deep below a commit are left out. */
  | { kind: 'tree-depth'; depth: number }
  /** All objects of other types are left out. */
  | { kind: 'type'; type: ObjectType }
  /** What any of the filters leaves out. */
  | { kind: 'all-of'; filters: readonly ObjectFilter[] };
