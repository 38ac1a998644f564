import { AsyncLocalStorage } from 'node:async_hooks';
import type { Db } from '#shared/database/db.ts';
import type { Platform } from '#shared/platform/platform.ts';

/** The transaction that the running code is inside of. */
const current = new AsyncLocalStorage<{ open: boolean }>();

/**
 * The same database and platform, but that the platform's ports throw when they are called while a transaction of the
 * database is open in the same chain of calls. A transaction holds locks and a connection: what another system takes
 * its time for must not hold them too.
 */
export function refusePortsInTransactions<Guarded extends { db: Db; platform: Platform }>(
  { db, platform }: Guarded,
  onRefusal: (port: string) => void,
): { db: Db; platform: Guarded['platform'] } {
  return { db: watchTransactions(db), platform: guard(platform, 'platform', onRefusal) };
}

/** A proxy, since Kysely has private fields: methods run on the target. */
function watchTransactions(db: Db): Db {
  return new Proxy(db, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (name === 'transaction') return () => watchBuilder(target.transaction());
      return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value;
    },
  });
}

function watchBuilder(builder: ReturnType<Db['transaction']>): ReturnType<Db['transaction']> {
  const execute: typeof builder.execute = (work) =>
    builder.execute((trx) => {
      const state = { open: true };
      return current.run(state, () => work(trx)).finally(() => (state.open = false));
    });
  return new Proxy(builder, {
    get(target, name) {
      if (name === 'execute') return execute;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value;
    },
  });
}

function guard<Port extends object>(port: Port, path: string, onRefusal: (port: string) => void): Port {
  return new Proxy(port, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      const place = `${path}.${String(name)}`;
      if (typeof value === 'object' && value !== null && path === 'platform') return guard(value, place, onRefusal);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown => {
        if (current.getStore()?.open === true) {
          onRefusal(place);
          throw new Error(`${place} was called inside a database transaction.`);
        }
        return (value as (...args: unknown[]) => unknown).apply(target, args);
      };
    },
  });
}
