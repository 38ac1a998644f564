import { type AppId, type BuildId, newUuid } from '#shared/ids.ts';
import type { BuildSpec } from '#shared/platform/builds.ts';
import { buildSpec, sourceOf } from '#shared/platform/testing/build-specs.ts';

/** Its build starts processes in other sessions, says `started`, and does not end by itself. */
export function endlessApp(appId: AppId = newUuid<AppId>(), buildId: BuildId = newUuid<BuildId>()): BuildSpec {
  // The argument of sleep is what the processes are found by.
  const build = `setsid -f sleep ${markerOf(buildId)} < /dev/null > /dev/null 2>&1; echo started; sleep ${markerOf(buildId)}`;
  const source = sourceOf({ 'package.json': JSON.stringify({ scripts: { build, start: 'node .' } }) });
  return buildSpec(source, { buildId, appId, appName: 'endless', timeoutSeconds: 300 });
}

/** Seconds to sleep that no other process sleeps. */
export function markerOf(buildId: BuildId): string {
  return `600.${Number.parseInt(buildId.slice(0, 8), 16)}`;
}
