import type { OidTable } from '#shared/git/objects/oid-table.ts';

/** Which objects a pack is to hold. */
export interface PackContents {
  /** Every id that was met. */
  table: OidTable;
  /** Numbers in the table of the objects to send. */
  send: number[];
  /** Whether the client has the object of this number already. */
  has: (number: number) => boolean;
}
