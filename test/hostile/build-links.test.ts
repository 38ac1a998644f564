import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AppId, newUuid } from '#shared/ids.ts';
import type { SourceAccess } from '#shared/platform/builds.ts';
import { buildSpec, buildToEnd, sourceOf } from '#shared/platform/testing/build-specs.ts';
import { openTestBuilds, type TestBuilds } from '#test/support/builds/test-builds.ts';

/** An app without dependencies whose hook puts a file where node_modules belongs, unless that is a link. */
const nodeApp = {
  'package.json': JSON.stringify({
    name: 'app',
    version: '1.0.0',
    scripts: {
      start: 'node server.js',
      postinstall: 'test -h node_modules || (rm -rf node_modules && echo owned > node_modules)',
    },
  }),
  'package-lock.json': JSON.stringify({
    name: 'app',
    version: '1.0.0',
    lockfileVersion: 3,
    requires: true,
    packages: { '': { name: 'app', version: '1.0.0', hasInstallScript: true } },
  }),
  'server.js': '',
};

/** An app without dependencies whose package manager is its own: pip runs its setup.py. */
const pythonApp = {
  'requirements.txt': '',
  Procfile: 'web: python3 -m http.server $PORT',
};

function withLinks(source: SourceAccess, links: Readonly<Record<string, string>>): SourceAccess {
  return {
    ...source,
    async *open() {
      yield* source.open();
      for (const [path, target] of Object.entries(links))
        yield { path, kind: 'symlink', content: new TextEncoder().encode(target) };
    },
  };
}

describe('links in the source of a build', () => {
  let builds: TestBuilds;
  let victim: string;
  beforeAll(async () => {
    builds = await openTestBuilds();
    victim = join(builds.dataDir, 'victim');
  });
  afterAll(() => builds.stop());

  /** The path climbs from `builds/<build_id>/app` to the data directory, but seems to stay inside the app. */
  const wayOut = 'x/x/x/../../../victim';

  it('do not let the cache write a file outside of the app', async () => {
    await writeFile(victim, 'untouched');
    const appId = newUuid<AppId>();
    const first = await buildToEnd(builds.builds, buildSpec(sourceOf(nodeApp), { appId }));
    expect(first.outcome.status).toBe('succeeded');
    const second = withLinks(sourceOf(nodeApp), { x: '.', node_modules: wayOut });
    const { lines } = await buildToEnd(builds.builds, buildSpec(second, { appId, cacheState: 'Warm' }));
    expect(lines.join('\n')).toContain('Node.js app detected');
    expect(await readFile(victim, 'utf8')).toBe('untouched');
  });

  it('do not lead an environment of Python out of the app', async () => {
    await writeFile(victim, 'untouched');
    const appId = newUuid<AppId>();
    const first = await buildToEnd(builds.builds, buildSpec(sourceOf(pythonApp), { appId }));
    expect(first.outcome.status).toBe('succeeded');
    const second = withLinks(sourceOf(pythonApp), { x: '.', '.venv': wayOut });
    await buildToEnd(builds.builds, buildSpec(second, { appId, cacheState: 'Warm' }));
    expect(await readFile(victim, 'utf8')).toBe('untouched');
  });
});
