import type { ObjectType } from '#shared/git/objects/object-type.ts';

/** Which objects a partial clone leaves out (git-rev-list(1), `--filter`). */
export type ObjectFilter =
  | { kind: 'none' }
  | { kind: 'blob-limit'; bytes: number }
  | { kind: 'tree-depth'; depth: number }
  | { kind: 'type'; type: ObjectType }
  /** What each of them lets through. */
  | { kind: 'all-of'; filters: readonly ObjectFilter[] };
