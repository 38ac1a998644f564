import { GitFault } from '#shared/git/git-fault.ts';
import type { FuzzTarget } from '#test/fuzz/git/engine.ts';

/** Bugs of each kind that the fuzzer must find. They run only when they are named, to test the fuzzer. */
export const plantedTargets: readonly FuzzTarget[] = [
  {
    name: 'planted-crash',
    seeds: [Buffer.from('valid')],
    run(input) {
      if (input.length > 8) throw new RangeError('planted: a crash');
      if (input.length < 5) throw new GitFault('too short');
    },
  },
  {
    name: 'planted-endless',
    seeds: [Buffer.from('valid')],
    run(input) {
      while (input.length > 8) input[0] = 0;
    },
  },
  {
    name: 'planted-memory',
    seeds: [Buffer.from('valid')],
    async run(input) {
      const buffers: Buffer[] = [];
      while (input.length > 8) buffers.push(Buffer.alloc(1024 * 1024, buffers.length));
    },
  },
];
