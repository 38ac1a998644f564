import { createHash } from 'node:crypto';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import type { BuildSpec } from '#shared/platform/builds.ts';
import { createInProcessBuilds, type InProcessBuilds, type RunBuild } from '#shared/platform/in-process-builds.ts';
import { parseProcfile } from '#shared/platform/procfile.ts';
import type { FakeImages } from './images.ts';

/**
 * What happens between reading the source and storing the image: nothing by default. A string is the cause of a failed
 * build. When the signal aborts the build is over, whatever the step does.
 */
export type FakeBuildStep = (
  spec: BuildSpec,
  files: ReadonlyMap<string, string>,
  line: (text: string) => void,
  signal: AbortSignal,
) => Promise<string | void>;

export interface FakeBuildsOptions {
  images: FakeImages;
  step?: FakeBuildStep;
}

/**
 * Builds that take what a Procfile says and store nothing but digests. They belong to this object, not to whoever starts
 * them: several control planes may share it, and the end of one of them ends no build.
 */
export function createFakeBuilds({ images, step = async () => undefined }: FakeBuildsOptions): InProcessBuilds {
  const runBuild: RunBuild = async (spec, line, signal) => {
    const outcome = await Promise.race([build(spec, step, line, signal), rejectOnAbort(signal)]);
    images.addImage(spec.appId, outcome.imageUrl);
    return outcome;
  };
  return createInProcessBuilds({ runBuild, atOnce: 100 });
}

async function build(
  spec: BuildSpec,
  step: FakeBuildStep,
  line: (text: string) => void,
  signal: AbortSignal,
): ReturnType<RunBuild> {
  const files = await readFiles(spec);
  const text = files.get('Procfile');
  if (text === undefined)
    throw new BuildFailure('No language detected at the top of the source. Looked for: Procfile. Add one of them.');
  line('-----> Plain app detected (Procfile)');
  const procfile = parseProcfile(text);
  const cause = await step(spec, files, (detail) => line(`       ${detail}`), signal);
  if (cause !== undefined) throw new BuildFailure(cause);
  line('-----> Discovering process types');
  line(`       Procfile declares types -> ${Object.keys(procfile.processes).join(', ')}`);
  const digest = createHash('sha256')
    .update(JSON.stringify([...files]))
    .digest('hex');
  return { status: 'succeeded', imageUrl: `fake://${spec.appId}@sha256:${digest}`, digest, builder: 'procfile', ...procfile };
}

async function readFiles(spec: BuildSpec): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>();
  for await (const { path, content } of spec.source.open()) {
    const decoder = new TextDecoder();
    let text = '';
    for await (const chunk of content instanceof Uint8Array ? [content] : content)
      text += decoder.decode(chunk, { stream: true });
    files.set(path, text + decoder.decode());
  }
  return files;
}

function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    if (signal.aborted) reject(signal.reason as Error);
  });
}
