import type { PackLocation } from '#shared/git/packs/reading/open-pack.ts';
import { PackGone } from '#shared/git/packs/reading/pack-gone.ts';
import { type LocatedPacks, locatePacks } from '#shared/git/repository/locate-packs.ts';
import type { RepositoryAccess } from '#shared/git/repository/repository-access.ts';
import type { TaskRunner, TaskStreams } from '#shared/git/worker/task-runner.ts';
import type { TaskName, TaskParams, TaskResult } from '#shared/git/worker/tasks.ts';

import type { RepositoryId } from '#shared/ids.ts';

/** Runs worker tasks on a set of packs. */
export interface PackTasks {
  /** See `TaskRunner.run`. */
  run<Name extends TaskName>(name: Name, params: Omit<TaskParams<Name>, 'packs'>): Promise<TaskResult<Name>>;
}

/** Tasks on packs that stay where they are, such as those in quarantine. */
export function createPackTasks(workers: TaskRunner, packs: readonly PackLocation[]): PackTasks {
  return { run: (name, params) => workers.run(name, withPacks(params, packs)) };
}

/** TypeScript cannot infer that the parameters of every task include `packs`. */
function withPacks<Name extends TaskName>(
  params: Omit<TaskParams<Name>, 'packs'>,
  packs: readonly PackLocation[],
): TaskParams<Name> {
  return { ...params, packs } as unknown as TaskParams<Name>;
}

type Output = Pick<TaskStreams, 'output' | 'signal'>;

/**
 * The packs of a repository while somebody reads it: `using packs = await pinPacks(…)`. When a pack was retired and its files
 * were removed meanwhile, a task is run again on the packs that replaced it.
 */
export class PinnedPacks implements PackTasks, Disposable {
  readonly #access: RepositoryAccess;
  readonly #repositoryId: RepositoryId;
  /** The last is the current one. Tasks may still be reading the others. */
  readonly #located: LocatedPacks[];

  constructor(access: RepositoryAccess, repositoryId: RepositoryId, located: LocatedPacks) {
    this.#access = access;
    this.#repositoryId = repositoryId;
    this.#located = [located];
  }

  /** See `TaskRunner.run`. */
  async run<Name extends TaskName>(
    name: Name,
    params: Omit<TaskParams<Name>, 'packs'>,
    { output, ...streams }: Output = {},
  ): Promise<TaskResult<Name>> {
    let hasOutput = false;
    const write = async (chunk: Uint8Array): Promise<void> => {
      hasOutput = true;
      await output?.(chunk);
    };
    const attempt = (): Promise<TaskResult<Name>> =>
      this.#access.workers.run(name, withPacks(params, this.#located.at(-1)?.packs ?? []), { ...streams, output: write });
    try {
      return await attempt();
    } catch (error) {
      // What was written cannot be taken back.
      if (!(error instanceof PackGone) || hasOutput) throw error;
    }
    this.#located.push(await locatePacks(this.#access, this.#repositoryId));
    return await attempt();
  }

  [Symbol.dispose](): void {
    for (const located of this.#located) located[Symbol.dispose]();
  }
}

/** Pins all packs of a repository, including unreachable objects within their grace period. */
export async function pinPacks(access: RepositoryAccess, repositoryId: RepositoryId): Promise<PinnedPacks> {
  return new PinnedPacks(access, repositoryId, await locatePacks(access, repositoryId));
}
