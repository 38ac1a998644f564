import type { OidTable } from '#shared/git/objects/oid-table.ts';

/** Which objects a pack is to hold. */
export interface PackContents {
  /** Ids of the objects, and possibly others. */
  table: OidTable;
  /** Numbers in the table of the objects that the pack is to hold. */
  send: number[];
  /** Whether the receiver of the pack has the object with this number already. */
  has: (number: number) => boolean;
}
