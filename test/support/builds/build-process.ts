/** A process of its own that runs one build, for tests to kill: `node build-host.ts <data directory> <app id> <build id>`. */
import type { AppId, BuildId } from '#shared/ids.ts';
import { createLog } from '#shared/log.ts';
import { createLocalBuilds } from '#shared/platform/local/builds/local-builds.ts';
import { openSandbox } from '#shared/platform/local/sandbox/open-sandbox.ts';
import { endlessApp } from './endless-app.ts';

const [dataDir = '', appId, buildId] = process.argv.slice(2);
const sandbox = await openSandbox({ dataDir, path: process.env['PATH'] ?? '' });
const { builds, recover } = createLocalBuilds({
  dataDir,
  log: createLog('silent', () => undefined),
  sandbox,
  hostEnv: process.env,
});
await recover();
await builds.runBuild(endlessApp(appId as AppId, buildId as BuildId), (line) => console.log(line), new AbortController().signal);
