import type { PostgresClient } from '#shared/database/postgres-client.ts';
import type { Log } from '#shared/log.ts';

/** What one app's sessions may take of what all databases of a server share. PostgreSQL has no limits of its own for these. */
export interface SharedResources {
  /** A transaction that stays open keeps old versions of rows and numbers of transactions of the whole server from being reused. */
  readonly transactionSeconds: number;
  /** Of all sessions of an app together. The server has one table of locks; when it is full nobody gets any. */
  readonly locks: number;
  /** From 0 to 1: a session that does not read its notifications ends when the queue of all of them is so full. */
  readonly notificationShare: number;
}

/** A session that does not read notifications for so long, since it is in a transaction or its client does not read, holds up all. */
const readSeconds = 5;

const tooMuch = `
  select pid, usename as app, 'a transaction open for too long' as reason from pg_stat_activity
   where usename like 'app\\_%' and xact_start < now() - make_interval(secs => $1)
  union
  select pid, usename, 'too many locks' from pg_stat_activity
   where usename in (
     select usename from pg_locks join pg_stat_activity using (pid)
      where usename like 'app\\_%' group by usename having count(*) > $2)
     and (select count(*) from pg_locks where pg_locks.pid = pg_stat_activity.pid) > $2::bigint / 100
  union
  select pid, usename, 'notifications not read' from pg_stat_activity
   where usename like 'app\\_%' and $3
     and (xact_start < now() - make_interval(secs => ${readSeconds})
       or (wait_event = 'ClientWrite' and state_change < now() - make_interval(secs => ${readSeconds})))`;

/** Ends the sessions of apps that take too much. Their clients see that an administrator has ended the connection. */
export async function limitSessions(client: PostgresClient, limits: SharedResources, log: Log): Promise<void> {
  const { transactionSeconds, locks, notificationShare } = limits;
  // The question itself drops what all sessions have read. Without it a queue that was full once stays full.
  const { rows: queues } = await client.query<{ used: number }>('select pg_notification_queue_usage() as used');
  const isFull = (queues[0]?.used ?? 0) > notificationShare;
  const { rows } = await client.query<{ app: string; reason: string }>(
    `select app, reason, pg_terminate_backend(pid) from (${tooMuch}) as sessions`,
    [transactionSeconds, locks, isFull],
  );
  for (const { app, reason } of rows) log.warn("a session of an app's database was ended", { database: app, reason });
}
