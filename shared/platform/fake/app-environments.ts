import type { AppId } from '#shared/ids.ts';
import type { AppEnvironment, AppEnvironments } from '#shared/platform/app-environments.ts';

/** App environments in memory. */
export interface FakeAppEnvironments extends AppEnvironments {
  /** The environments there are. */
  readonly environments: ReadonlyMap<AppId, AppEnvironment>;
}

/** Creates nothing but the record. */
export function createFakeAppEnvironments(): FakeAppEnvironments {
  const environments = new Map<AppId, AppEnvironment>();
  return {
    environments,
    async ensureApp(app) {
      environments.set(app.appId, app);
    },
    deleteApp: async (appId) => environments.delete(appId),
  };
}
