import { expect, it } from 'vitest';
import { StartError } from '#deploy/host/start-error.ts';
import { choosePlatform } from '#deploy/parts/choose-platform.ts';

it('a platform that does not exist yet is refused before anything is started', () => {
  expect(() => choosePlatform({ platform: 'kubernetes' })).toThrow(
    new StartError('PAAS_PLATFORM: kubernetes is not built yet; leave it unset to run on this machine.'),
  );
  expect(choosePlatform({ platform: 'local' })).toBeTypeOf('function');
});
