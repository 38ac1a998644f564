import { describe, expect, it } from 'vitest';
import { newUuid } from '#shared/ids.ts';
import { specOf } from '#test/support/workloads/workload-fixture.ts';
import { parseAppReleases } from './app-releases.ts';

describe('the stored releases of an app', () => {
  it('are read as they were written', () => {
    const releases = { live: specOf(newUuid(), 1, 'image'), candidate: specOf(newUuid(), 2, 'image') };
    expect(parseAppReleases(JSON.stringify(releases))).toEqual(releases);
    expect(parseAppReleases('{}')).toEqual({});
  });

  it('are read as an earlier version wrote them, with the environment in one piece', () => {
    const { config: _config, bindings: _bindings, ...spec } = specOf(newUuid(), 1, 'image');
    const stored = JSON.stringify({ live: { ...spec, env: { COLOR: 'green', KVSTORE_URL: 'redis://' } } });
    expect(parseAppReleases(stored).live).toEqual({ ...spec, config: { COLOR: 'green', KVSTORE_URL: 'redis://' }, bindings: [] });
  });
});
