import { createHash } from 'node:crypto';
import type { AppId } from '#shared/ids.ts';
import type { BuildCaches } from '#shared/platform/build-caches.ts';
import type { BuildOutcome, BuildRunner, BuildSpec } from '#shared/platform/builds.ts';
import type { Images } from '#shared/platform/images.ts';
import { ProcfileError, parseProcfile } from '#shared/platform/local/builds/procfile.ts';

export interface FakeBuilds {
  readonly caches: BuildCaches;
  readonly builds: BuildRunner;
  readonly images: Images;
}

/**
 * What happens between reading the source and storing the image: nothing by default. A string is the cause of a failed
 * build. It is over when the signal aborts.
 */
export type FakeBuildStep = (
  spec: BuildSpec,
  files: ReadonlyMap<string, string>,
  line: (text: string) => void,
  signal: AbortSignal,
) => Promise<string | void>;

/** Builds that take what a Procfile says and keep nothing but digests. */
export function createFakeBuilds(step: FakeBuildStep = async () => undefined): FakeBuilds {
  const caches = new Set<AppId>();
  const images = new Map<AppId, Set<string>>();
  return {
    caches: {
      async ensureCache(appId) {
        const existed = caches.has(appId);
        caches.add(appId);
        return { existed };
      },
      deleteCache: async (appId) => caches.delete(appId),
      readCache: async (appId) => (caches.has(appId) ? { usedBytes: 0 } : undefined),
    },
    builds: {
      async runBuild(spec, line, signal) {
        signal.throwIfAborted();
        const files = await readFiles(spec);
        const deadline = AbortSignal.timeout(spec.timeoutSeconds * 1000);
        const outcome = await Promise.race([
          attempt(spec, files, step, line, AbortSignal.any([signal, deadline])),
          aborted(signal),
          aborted(deadline),
        ]).catch((error: unknown): BuildOutcome => {
          signal.throwIfAborted();
          if (!deadline.aborted) throw error;
          return { status: 'failed', cause: `The build took longer than ${spec.timeoutSeconds} seconds and was stopped.` };
        });
        if (outcome.status === 'succeeded') images.set(spec.appId, (images.get(spec.appId) ?? new Set()).add(outcome.imageUrl));
        return outcome;
      },
    },
    images: {
      imageExists: async (imageUrl) => [...images.values()].some((urls) => urls.has(imageUrl)),
      deleteImage: async (imageUrl) => [...images.values()].some((urls) => urls.delete(imageUrl)),
      deleteImages: async (appId) => images.delete(appId),
    },
  };
}

async function attempt(
  spec: BuildSpec,
  files: ReadonlyMap<string, string>,
  step: FakeBuildStep,
  line: (text: string) => void,
  signal: AbortSignal,
): Promise<BuildOutcome> {
  const text = files.get('Procfile');
  if (text === undefined)
    return { status: 'failed', cause: 'No language detected at the top of the source. Looked for: Procfile. Add one of them.' };
  line('-----> Plain app detected (Procfile)');
  try {
    const procfile = parseProcfile(text);
    const cause = await step(spec, files, (detail) => line(`       ${detail}`), signal);
    if (cause !== undefined) return { status: 'failed', cause };
    line('-----> Discovering process types');
    line(`       Procfile declares types -> ${Object.keys(procfile.processes).join(', ')}`);
    const digest = createHash('sha256')
      .update(JSON.stringify([...files]))
      .digest('hex');
    return { status: 'succeeded', imageUrl: `slug://${spec.appId}@sha256:${digest}`, digest, builder: 'procfile', ...procfile };
  } catch (error) {
    if (error instanceof ProcfileError) return { status: 'failed', cause: error.message };
    throw error;
  }
}

async function readFiles(spec: BuildSpec): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>();
  for await (const { path, content } of spec.openSource()) {
    const decoder = new TextDecoder();
    let text = '';
    for await (const chunk of content instanceof Uint8Array ? [content] : content)
      text += decoder.decode(chunk, { stream: true });
    files.set(path, text + decoder.decode());
  }
  return files;
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
