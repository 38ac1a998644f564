/** How a process ends: 'stop' leaves nothing running; 'restart' leaves apps, gateway and database to the next start. */
export type Ending = 'stop' | 'restart';

/** Everything that a process has started, to be ended in reverse order: each part before those it was built on. */
export class Lifetime {
  readonly #started = new AsyncDisposableStack();
  /** How a start that fails ends what it had started. */
  endingOnFailure: Ending = 'stop';
  #ending: Ending | undefined;

  /** Adds what ends a part that has just been started. */
  onEnd(end: (ending: Ending) => unknown): void {
    this.#started.defer(async () => void (await end(this.#ending ?? this.endingOnFailure)));
  }

  /** Ends all parts, each after the one before it, also when one of them fails. A second call does nothing. */
  end(ending: Ending): Promise<void> {
    this.#ending ??= ending;
    return this.#started.disposeAsync();
  }
}

/** Runs `start`. What it had started is ended again when it throws. */
export async function startWithLifetime<Result>(start: (lifetime: Lifetime) => Promise<Result>): Promise<Result> {
  const lifetime = new Lifetime();
  try {
    return await start(lifetime);
  } catch (error) {
    await lifetime.end(lifetime.endingOnFailure);
    throw error;
  }
}
