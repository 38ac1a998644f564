import type { ColumnType, Kysely } from 'kysely';

/**
 * The platform's tables by name. Empty here: each store declares its own in its file, by declaration merging, so that this
 * folder imports none of them. See "Adding a migration" in CONTRIBUTING.md.
 */
export interface Tables {}

/** A connection pool, or the transaction in which a write must happen. In-memory fakes of ports ignore it. */
export type Db = Kysely<Tables>;

/** A column that PostgreSQL fills with the time of the insert when it is left out, and that never changes. */
export type CreatedAt = ColumnType<Date, Date | undefined, never>;

/** A column that PostgreSQL fills with the time of the insert when it is left out. */
export type UpdatedAt = ColumnType<Date, Date | undefined, Date>;
