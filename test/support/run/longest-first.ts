import { relative } from 'node:path';
import type { TestSpecification } from 'vitest/node';
import { BaseSequencer } from 'vitest/node';

/**
 * The order in which test files start: those that take long first, so that no worker is left with one while the others have
 * nothing to do. Files that run in a process of their own come before those that share one, because a process is shared
 * only by files that follow each other.
 * @param slowest paths from the root, the slowest first
 */
export function createLongestFirst(slowest: readonly string[]): typeof BaseSequencer {
  return class LongestFirst extends BaseSequencer {
    override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
      const place = ({ moduleId }: TestSpecification): number => {
        const index = slowest.indexOf(relative(this.ctx.config.root, moduleId));
        return index < 0 ? slowest.length : index;
      };
      const group = ({ project: { config } }: TestSpecification): number =>
        2 * (config.sequence.groupOrder ?? 0) + (config.isolate ? 0 : 1);
      const sorted = await super.sort(files);
      return sorted.toSorted((one, other) => group(one) - group(other) || place(one) - place(other));
    }
  };
}
