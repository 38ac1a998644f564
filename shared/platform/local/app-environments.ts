import type { AppId } from '#shared/ids.ts';
import type { AppEnvironments } from '#shared/platform/app-environments.ts';

/** On one machine an app needs a uid of its own, which nobody else gets after it either: files may outlive the app. */
export function createLocalAppEnvironments(sandbox: { ensureUid(appId: AppId): Promise<number> }): AppEnvironments {
  return {
    async ensureApp({ appId }) {
      await sandbox.ensureUid(appId);
    },
    deleteApp: () => Promise.resolve(false),
  };
}
