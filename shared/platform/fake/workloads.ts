import type { AppId } from '#shared/ids.ts';
import { followRun } from '#shared/platform/followed-run.ts';
import type { Workloads } from '#shared/platform/workloads.ts';
import { type FakeApps, openFakeApp } from './app-workload.ts';

/** Workloads that a test can let crash. */
export interface FakeWorkloads extends Workloads {
  /** The instance ends by itself, and is started again at once. */
  crash(appId: AppId, name: string): void;
}

/** The standard input of a run. */
class FakeInput {
  readonly #parts: Uint8Array[] = [];
  readonly #ended = Promise.withResolvers<void>();

  write(bytes: Uint8Array | null): void {
    if (bytes === null) this.#ended.resolve();
    else this.#parts.push(bytes);
  }

  async readAll(): Promise<string> {
    await this.#ended.promise;
    return this.#parts.map((bytes) => new TextDecoder().decode(bytes)).join('');
  }
}

/** Workloads without processes. */
export function createFakeWorkloads(fake: FakeApps): FakeWorkloads {
  const { apps, router, logs, script } = fake;
  const inputs = new Map<string, FakeInput>();
  return {
    async ensureWorkload(spec) {
      const app = openFakeApp(fake, spec.appId);
      if (app.candidate?.releaseVersion !== spec.releaseVersion) await app.discardCandidate();
      const failure = app.startMissing(spec);
      if (failure === undefined || app.live === undefined || app.live.releaseVersion === spec.releaseVersion)
        await app.makeLive(spec);
      else await app.discardCandidate();
    },
    async restartWorkload(appId) {
      await apps.get(appId)?.restart();
    },
    async deleteWorkload(appId) {
      const app = apps.get(appId);
      const routed = await router.deleteRoute(appId);
      apps.delete(appId);
      if (app !== undefined) [app.live, app.candidate] = [undefined, undefined];
      return app !== undefined || routed;
    },
    async readInstances(appId) {
      return (apps.get(appId)?.instances ?? [])
        .map(({ key: _key, ...facts }) => facts)
        .sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }) || a.releaseVersion - b.releaseVersion);
    },
    async runOnce({ command }, line, signal) {
      signal.throwIfAborted();
      return (await script.run?.(command, line, signal)) ?? 0;
    },
    async *runAttached({ id, command, input }, signal) {
      signal.throwIfAborted();
      const given = new FakeInput();
      if (input) inputs.set(id, given);
      try {
        yield* followRun(
          async (line, end) =>
            (await script.run?.(command, line, end, () => (input ? given.readAll() : Promise.resolve('')))) ?? 0,
          signal,
        );
      } finally {
        inputs.delete(id);
      }
    },
    async writeInput(runId, bytes) {
      const input = inputs.get(runId);
      input?.write(bytes);
      return input !== undefined;
    },
    crash(appId, name) {
      apps.get(appId)?.crash(name);
      void logs.appendPlatformLog(appId, `${name} exited with code 3, restarting in 1 s`);
    },
  };
}
