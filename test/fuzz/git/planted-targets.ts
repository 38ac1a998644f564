import { GitFault } from '#shared/git/git-fault.ts';
import type { FuzzTarget } from '#test/fuzz/git/engine.ts';

/** What the fuzzer is there to find, one of each: run only where they are named, to see that it does. */
export const plantedTargets: readonly FuzzTarget[] = [
  {
    name: 'planted-crash',
    seeds: [Buffer.from('sound')],
    run(input) {
      if (input.length > 8) throw new RangeError('planted: a crash');
      if (input.length < 5) throw new GitFault('too short');
    },
  },
  {
    name: 'planted-endless',
    seeds: [Buffer.from('sound')],
    run(input) {
      while (input.length > 8) input[0] = 0;
    },
  },
  {
    name: 'planted-memory',
    seeds: [Buffer.from('sound')],
    async run(input) {
      const held: Buffer[] = [];
      while (input.length > 8) held.push(Buffer.alloc(1024 * 1024, held.length));
    },
  },
];
