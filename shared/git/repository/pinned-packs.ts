import type { PackLocation } from '#shared/git/packs/reading/open-pack.ts';
import { PackGone } from '#shared/git/packs/reading/pack-gone.ts';
import { type LocatedPacks, locatePacks, type RepositoryAccess } from '#shared/git/repository/repository-access.ts';
import type { TaskName, TaskParams, TaskResult } from '#shared/git/worker/tasks.ts';
import type { TaskStreams, WorkerPool } from '#shared/git/worker/worker-pool.ts';
import type { RepositoryId } from '#shared/ids.ts';

/** Packs in which a worker can look things up. */
export interface ReadPacks {
  /** See `WorkerPool.run`. */
  run<Name extends TaskName>(name: Name, params: Omit<TaskParams<Name>, 'packs'>): Promise<TaskResult<Name>>;
}

/** Of packs that nobody takes away. */
export function readPacks(workers: WorkerPool, packs: readonly PackLocation[]): ReadPacks {
  return { run: (name, params) => workers.run(name, withPacks(params, packs)) };
}

/** No type tells that every task takes packs. */
function withPacks<Name extends TaskName>(
  params: Omit<TaskParams<Name>, 'packs'>,
  packs: readonly PackLocation[],
): TaskParams<Name> {
  return { ...params, packs } as unknown as TaskParams<Name>;
}

type Output = Pick<TaskStreams, 'output' | 'signal'>;

/**
 * The packs of a repository for as long as somebody reads it: `using held = await holdPacks(…)`. Where a pack was retired
 * and removed in the meantime, those that stand in for it are read.
 */
export class HeldPacks implements ReadPacks, Disposable {
  readonly #access: RepositoryAccess;
  readonly #repositoryId: RepositoryId;
  /** The last are those of now; tasks may still be reading the others. */
  readonly #located: LocatedPacks[];

  constructor(access: RepositoryAccess, repositoryId: RepositoryId, located: LocatedPacks) {
    this.#access = access;
    this.#repositoryId = repositoryId;
    this.#located = [located];
  }

  /** See `WorkerPool.run`. */
  async run<Name extends TaskName>(
    name: Name,
    params: Omit<TaskParams<Name>, 'packs'>,
    { output, ...streams }: Output = {},
  ): Promise<TaskResult<Name>> {
    let begun = false;
    const write = async (chunk: Uint8Array): Promise<void> => {
      begun = true;
      await output?.(chunk);
    };
    const attempt = (): Promise<TaskResult<Name>> =>
      this.#access.workers.run(name, withPacks(params, this.#located.at(-1)?.packs ?? []), { ...streams, output: write });
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof PackGone) || begun) throw error;
    }
    this.#located.push(await locatePacks(this.#access, this.#repositoryId));
    return await attempt();
  }

  [Symbol.dispose](): void {
    for (const located of this.#located) located[Symbol.dispose]();
  }
}

/** What a repository holds at this moment, unreachable objects within their time of grace included. */
export async function holdPacks(access: RepositoryAccess, repositoryId: RepositoryId): Promise<HeldPacks> {
  return new HeldPacks(access, repositoryId, await locatePacks(access, repositoryId));
}
