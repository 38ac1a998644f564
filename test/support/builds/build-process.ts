/** A process of its own that runs one build, for tests to kill: `node build-process.ts <data directory> <app id> <build id>`. */
import type { AppId, BuildId } from '#shared/ids.ts';
import { createBuildDrivers } from '#shared/platform/local/builds/build-drivers.ts';
import { openSandbox } from '#shared/platform/local/sandbox/open-sandbox.ts';
import { endlessApp } from './endless-app.ts';

const [dataDir = '', appId, buildId] = process.argv.slice(2);
const sandbox = await openSandbox({ dataDir, path: process.env['PATH'] ?? '' });
const { builds, recover } = createBuildDrivers({ dataDir, sandbox, hostEnv: process.env });
await recover();
const spec = endlessApp(appId as AppId, buildId as BuildId);
await builds.startBuild(spec);
for await (const event of builds.watchBuild(spec.buildId, 0, new AbortController().signal))
  if (event.type === 'line') console.log(event.line);
