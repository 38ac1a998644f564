import { randomUUID } from 'node:crypto';
import { type AppId, type BuildId, newUuid } from '#shared/ids.ts';
import type { BuildOutcome } from '#shared/platform/builds.ts';
import type { BuildDriversOptions } from '#shared/platform/local/builds/build-drivers.ts';
import { planProgram } from '#shared/platform/local/workloads/plan-program.ts';
import { buildSpec, buildToEnd, sourceOf } from '#shared/platform/testing/build-specs.ts';
import { openTestBuilds, type TestBuilds } from '#test/support/builds/test-builds.ts';
import { freePort } from '#test/support/servers/free-port.ts';

/** Contents by path, or values by name. */
export type Texts = Readonly<Record<string, string>>;

/** Contents by path: text of files, bytes of programs. */
export type Files = Readonly<Record<string, string | Uint8Array>>;

export interface RealBuilds extends TestBuilds {
  /** @param env the app's variables */
  build(appId: AppId, files: Files, env?: Texts): Promise<{ outcome: BuildOutcome; log: string }>;
  /** @throws Error with the log where the build fails */
  succeed(appId: AppId, files: Files, env?: Texts): Promise<{ imageUrl: string; log: string; processes: Texts }>;
  /** Starts the image's web process and requests `path`. */
  visit(appId: AppId, imageUrl: string, path?: string): Promise<Response>;
}

/** Builds with the real tools and registries, and runs what was built. */
export async function openRealBuilds(imageRegistries?: BuildDriversOptions['imageRegistries']): Promise<RealBuilds> {
  const opened = await openTestBuilds({}, imageRegistries);

  async function build(appId: AppId, files: Files, env: Texts = {}): Promise<{ outcome: BuildOutcome; log: string }> {
    const { state } = await opened.caches.ensureCache(appId);
    const spec = buildSpec(sourceOf(files), {
      appId,
      env,
      buildId: newUuid<BuildId>(),
      cacheState: state === 'existed' ? 'Warm' : 'Cold',
    });
    const { outcome, lines } = await buildToEnd(opened.builds, spec);
    return { outcome, log: lines.join('\n') };
  }

  async function succeed(
    appId: AppId,
    files: Files,
    env: Texts = {},
  ): Promise<{ imageUrl: string; log: string; processes: Texts }> {
    const { outcome, log } = await build(appId, files, env);
    if (outcome.status !== 'succeeded') throw new Error(`${JSON.stringify(outcome)}\n${log}`);
    return { ...outcome, log };
  }

  async function visit(appId: AppId, imageUrl: string, path = '/'): Promise<Response> {
    const image = await opened.images.readImage(imageUrl);
    const port = await freePort();
    const program = {
      ...{ id: `web-${randomUUID()}`, command: image.processes['web'] ?? 'false', survivesControlPlane: false },
      env: { PORT: String(port) },
    };
    const place = { uid: await opened.sandbox.ensureUid(appId), network: undefined, layers: opened.sandbox.layers };
    const child = await opened.sandbox.spawn(planProgram(program, image, place), { stdout: 'pipe', stderr: 'pipe' });
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (said += String(chunk)));
    let ended = false;
    void child.exited.then(() => (ended = true));
    try {
      for (;;) {
        if (ended) throw new Error(`It exited before it listened: ${said}`);
        const answer = await fetch(`http://127.0.0.1:${port}${path}`).catch(() => undefined);
        if (answer !== undefined) return new Response(await answer.text(), answer);
        await new Promise((resolve) => setTimeout(resolve, 30));
      }
    } finally {
      await opened.sandbox.end(child.record);
    }
  }

  return { ...opened, build, succeed, visit };
}
