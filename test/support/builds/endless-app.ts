import { type AppId, type BuildId, newUuid, type TenantId } from '#shared/ids.ts';
import type { BuildSpec, SourceEntry } from '#shared/platform/builds.ts';

/** Its build starts processes in other sessions, says `started`, and does not end by itself. */
export function endlessApp(appId: AppId = newUuid<AppId>(), buildId: BuildId = newUuid<BuildId>()): BuildSpec {
  // The argument of sleep is what the processes are found by.
  const build = `setsid -f sleep ${markerOf(buildId)} < /dev/null > /dev/null 2>&1; echo started; sleep ${markerOf(buildId)}`;
  return {
    buildId,
    appId,
    appName: 'endless',
    tenantId: 'abcd1234' as TenantId,
    async *openSource(): AsyncIterable<SourceEntry> {
      const content = new TextEncoder().encode(JSON.stringify({ scripts: { build, start: 'node .' } }));
      yield { path: 'package.json', kind: 'file', content };
    },
    env: {},
    cacheState: 'Cold',
    timeoutSeconds: 300,
  };
}

/** Seconds to sleep that no other process sleeps. */
export function markerOf(buildId: BuildId): string {
  return `600.${Number.parseInt(buildId.slice(0, 8), 16)}`;
}
