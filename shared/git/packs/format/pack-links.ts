/**
 * How the objects of a pack are connected, with each other and with the rest of the repository. Stored as JSON beside the pack,
 * null when that is not known or needs too many ids. Ids are in hexadecimal.
 */
export interface PackLinks {
  /** Objects of the pack that no other object of it refers to: every other object of it is reachable from one of them. */
  roots: readonly string[];
  /** Commits outside of the pack that its own commits refer to. */
  needs: readonly string[];
}

/** Roots and needs together; a pack with more of them has no `PackLinks`. */
export const mostLinks = 1000;
