/**
 * How a pack hangs together with the rest of its repository, stored as JSON beside the pack (null where it is not known).
 * Ids are in hexadecimal.
 */
export interface PackLinks {
  /** Objects of the pack that no other object of it refers to: every other object of it is reachable from one of them. */
  roots: readonly string[];
  /** Commits outside of the pack that its own commits refer to. */
  needs: readonly string[];
}

/** Roots and needs together; a pack with more of them has no `PackLinks`. */
export const mostLinks = 1000;
