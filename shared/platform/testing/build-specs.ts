import { type AppId, type BuildId, newUuid, type TenantId } from '#shared/ids.ts';
import type { BuildEvent, BuildOutcome, BuildSpec, Builds, SourceAccess, SourceEntry } from '#shared/platform/builds.ts';

/** A source in memory: path to the text of a file, or to the bytes of a program. */
export function sourceOf(files: Readonly<Record<string, string | Uint8Array>>): SourceAccess {
  return {
    async *open() {
      for (const path of Object.keys(files).sort()) {
        const content = files[path] ?? '';
        yield (
          typeof content === 'string'
            ? { path, kind: 'file', content: new TextEncoder().encode(content) }
            : { path, kind: 'executable', content }
        ) satisfies SourceEntry;
      }
    },
    createAddress: async () => ({ url: 'http://localhost/source', token: 'token' }),
    close: async () => undefined,
  };
}

/** A first build of a new app. */
export function buildSpec(source: SourceAccess, changes: Partial<BuildSpec> = {}): BuildSpec {
  return {
    buildId: newUuid<BuildId>(),
    appId: newUuid<AppId>(),
    appName: 'hello',
    tenantId: 'abcd1234' as TenantId,
    source,
    env: {},
    cacheState: 'Cold',
    createCallback: async () => ({ url: 'http://localhost/complete', token: 'token' }),
    timeoutSeconds: 120,
    ...changes,
  };
}

export const unaborted = new AbortController().signal;

export interface WatchedBuild {
  outcome: BuildOutcome;
  lines: string[];
  seconds: number;
}

/** Watches a build to its end. */
export async function watchToEnd(builds: Builds, buildId: BuildId, afterLine = 0): Promise<WatchedBuild> {
  const lines: string[] = [];
  let end: Extract<BuildEvent, { type: 'ended' }> | undefined;
  for await (const event of builds.watchBuild(buildId, afterLine, unaborted)) {
    if (event.type === 'ended') end = event;
    else lines.push(event.line);
  }
  if (end === undefined) throw new Error('The watch ended before the build did.');
  return { outcome: end.outcome, seconds: end.seconds, lines };
}

/** Starts a build and watches it to its end. */
export async function buildToEnd(builds: Builds, spec: BuildSpec): Promise<WatchedBuild> {
  await builds.startBuild(spec);
  return watchToEnd(builds, spec.buildId);
}

/** Starts a build and waits until it says `started`. */
export async function buildUntilStarted(builds: Builds, spec: BuildSpec): Promise<void> {
  await builds.startBuild(spec);
  for await (const event of builds.watchBuild(spec.buildId, 0, unaborted)) {
    if (event.type === 'ended') throw new Error(`The build ended: ${JSON.stringify(event.outcome)}`);
    if (event.line.endsWith('started')) return;
  }
}
