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

it("a variable for an add-on's clients loses to the app's own of the same name", () => {
  const clientVariables = { PGHOST: 'real', PGPORT: '5432' };
  const bindings = [{ addonType: 'database', variables: { DATABASE_URL: 'postgres://real' }, clientVariables }] as const;
  expect(workloadEnvironment({ config: { PGHOST: 'mine' }, bindings })).toEqual({
    PGHOST: 'mine',
    PGPORT: '5432',
    DATABASE_URL: 'postgres://real',
  });
});
