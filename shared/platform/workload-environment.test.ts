import { expect, it } from 'vitest';
import { workloadEnvironment } from './workload-environment.ts';

it("an add-on's variable wins over the app's own of the same name", () => {
  const bindings = [
    { addonType: 'kvstore', variables: { KVSTORE_URL: 'redis://real' } },
    { addonType: 'database', variables: { DATABASE_URL: 'postgres://real' } },
  ] as const;
  expect(workloadEnvironment({ config: { COLOR: 'green', KVSTORE_URL: 'redis://mine' }, bindings })).toEqual({
    COLOR: 'green',
    KVSTORE_URL: 'redis://real',
    DATABASE_URL: 'postgres://real',
  });
});
