import { readdir } from 'node:fs/promises';
import { AppError } from '#shared/errors.ts';
import { ifMissing } from '#shared/files/if-missing.ts';
import { type AppId, isUuid } from '#shared/ids.ts';
import { createKeyedMutex } from '#shared/keyed-mutex.ts';
import type { AppWorkload } from './app-workload.ts';

/** An operation on an app. `over` aborts when the app is deleted or the platform stops. */
export type AppOperation<Result> = (app: AppWorkload, over: AbortSignal) => Promise<Result>;

/** The apps that this process runs. One operation at a time runs on each. */
export interface AppRegistry {
  /** Aborted when the platform stops, or leaves its apps to the next control plane. */
  readonly closing: AbortSignal;
  /** Undefined for an app that has not been opened since the process started. */
  find(appId: AppId): Promise<AppWorkload | undefined>;
  /** @throws AppError 'internal' when the platform is stopping */
  open(appId: AppId): Promise<AppWorkload>;
  /** Opens every app that has a directory in `workloadsDir`. */
  openAll(workloadsDir: string): Promise<readonly AppWorkload[]>;
  run<Result>(appId: AppId, operation: AppOperation<Result>): Promise<Result>;
  /** Interrupts the operation that runs on the app, then runs this one and forgets the app. */
  delete<Result>(appId: AppId, operation: (app: AppWorkload) => Promise<Result>): Promise<Result>;
  /** Aborts `closing`, then does this with each app. */
  close(each: (app: AppWorkload) => Promise<unknown>): Promise<void>;
}

/** @param load reads what an earlier control plane stored of the app, and starts nothing */
export function createAppRegistry(load: (appId: AppId) => Promise<AppWorkload>): AppRegistry {
  const apps = new Map<AppId, Promise<AppWorkload>>();
  const mutex = createKeyedMutex<AppId>();
  /** Aborted when the app is deleted. */
  const deletions = new Map<AppId, AbortController>();
  const closing = new AbortController();

  async function open(appId: AppId): Promise<AppWorkload> {
    if (closing.signal.aborted) throw new AppError('internal', 'The platform is stopping.');
    const known = apps.get(appId);
    if (known !== undefined) return known;
    const loading = load(appId);
    apps.set(appId, loading);
    loading.catch(() => apps.delete(appId));
    return loading;
  }

  function deletionOf(appId: AppId): AbortSignal {
    const controller = deletions.get(appId) ?? new AbortController();
    deletions.set(appId, controller);
    return controller.signal;
  }

  const registry: AppRegistry = {
    closing: closing.signal,
    find: async (appId) => apps.get(appId),
    open,
    async openAll(workloadsDir) {
      const names = await readdir(workloadsDir).catch(ifMissing([]));
      return Promise.all(names.filter(isUuid).map((name) => open(name as AppId)));
    },
    run: (appId, operation) =>
      mutex.run(appId, async () => operation(await open(appId), AbortSignal.any([closing.signal, deletionOf(appId)]))),
    delete(appId, operation) {
      deletions.get(appId)?.abort();
      deletions.delete(appId);
      return registry.run(appId, async (app) => {
        const result = await operation(app);
        apps.delete(appId);
        deletions.delete(appId);
        return result;
      });
    },
    async close(each) {
      closing.abort();
      await Promise.all([...apps.values()].map(async (app) => each(await app)));
    },
  };
  return registry;
}
