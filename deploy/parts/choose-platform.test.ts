import { expect, it } from 'vitest';
import { StartError } from '#deploy/host/start-error.ts';
import { choosePlatform } from '#deploy/parts/choose-platform.ts';

it('a platform that is not complete is refused before anything is started', () => {
  expect(() => choosePlatform({ platform: 'kubernetes' })).toThrow(
    new StartError(
      'PAAS_PLATFORM: kubernetes is not available yet: its settings and the parts of a start are missing (docs/kubernetes.md). Leave it unset to run on this machine.',
    ),
  );
  expect(choosePlatform({ platform: 'local' })).toBeTypeOf('function');
});
