import type { Clock } from '#shared/clock.ts';
import type { ApplyPush, GitStream, PushOutcome } from '#shared/git/git-storage.ts';

/** How often slots are checked while a push waits for one. */
const checkMilliseconds = 50;
/** A push whose client sends nothing for so many checks gives its slot up: others go on meanwhile. */
const mostIdleChecks = 4;
/** A push holds a slot for so many checks at most while others wait. */
const longestHoldChecks = 20;
/** A push that has waited for so many checks is admitted in any case, so that nobody can block the rest. */
const longestWaitChecks = 60;

/** Permission for one push to send its pack. */
export interface PushSlot {
  /**
   * The same bytes. While the push waits for its client, the slot may pass to another push; this one then goes on without.
   */
  watch(input: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
  /** Gives the slot to the next push. Calling it again is harmless. */
  release(): void;
}

interface Holder {
  checks: number;
  awaitsClient: boolean;
  /** Checks since the client last sent something. */
  idleChecks: number;
}

interface Waiter {
  checks: number;
  admit(holder: Holder): void;
}

/**
 * Limits how many pushes send their packs at a time. More of them than cores would not finish earlier: they would only use
 * more memory and take the event loop's core.
 */
export class PushSlots {
  readonly #slots: number;
  readonly #clock: Clock;
  readonly #holders = new Set<Holder>();
  readonly #waiting: Waiter[] = [];
  #isChecking = false;

  constructor(slots: number, clock: Clock) {
    this.#slots = slots;
    this.#clock = clock;
  }

  /** Resolves when a slot is free, in the order of arrival; at once when the client has gone. */
  async acquire(clientGone: AbortSignal): Promise<PushSlot> {
    const holder = this.#holders.size < this.#slots || clientGone.aborted ? this.#admit() : await this.#wait(clientGone);
    return {
      watch: (input) => ({ [Symbol.asyncIterator]: () => watched(holder, input[Symbol.asyncIterator]()) }),
      release: () => this.#release(holder),
    };
  }

  #admit(waiter?: Waiter): Holder {
    const holder: Holder = { checks: 0, awaitsClient: false, idleChecks: 0 };
    this.#holders.add(holder);
    waiter?.admit(holder);
    return holder;
  }

  #wait(clientGone: AbortSignal): Promise<Holder> {
    return new Promise((resolve) => {
      const waiter: Waiter = {
        checks: 0,
        admit: (holder) => {
          clientGone.removeEventListener('abort', leave);
          resolve(holder);
        },
      };
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
        this.#admit(waiter);
      };
      clientGone.addEventListener('abort', leave, { once: true });
      this.#waiting.push(waiter);
      if (!this.#isChecking) void this.#check();
    });
  }

  async #check(): Promise<void> {
    this.#isChecking = true;
    while (this.#waiting.length > 0) {
      await this.#clock.sleep(checkMilliseconds);
      for (const holder of this.#holders) {
        holder.checks++;
        if (holder.awaitsClient) holder.idleChecks++;
        if (holder.checks >= longestHoldChecks || holder.idleChecks >= mostIdleChecks) this.#release(holder);
      }
      for (const waiter of this.#waiting) waiter.checks++;
      while ((this.#waiting[0]?.checks ?? 0) >= longestWaitChecks) this.#admit(this.#waiting.shift());
    }
    this.#isChecking = false;
  }

  #release(holder: Holder): void {
    this.#holders.delete(holder);
    if (this.#holders.size < this.#slots && this.#waiting.length > 0) this.#admit(this.#waiting.shift());
  }
}

function watched(holder: Holder, input: AsyncIterator<Uint8Array>): AsyncIterator<Uint8Array> {
  return {
    next: async () => {
      holder.awaitsClient = true;
      try {
        return await input.next();
      } finally {
        holder.awaitsClient = false;
        holder.idleChecks = 0;
      }
    },
  };
}

/** Serves a push in a slot. The slot is released once the pack was received and checked: what the push does next may take minutes. */
export async function receiveInSlot(
  slots: PushSlots,
  stream: GitStream,
  applyPush: ApplyPush,
  receive: (stream: GitStream, applyPush: ApplyPush) => Promise<PushOutcome>,
): Promise<PushOutcome> {
  if (stream.step === 'advertise') return receive(stream, applyPush);
  const slot = await slots.acquire(stream.clientGone);
  const watchedStream: GitStream = {
    input: slot.watch(stream.input),
    write: (chunk) => stream.write(chunk),
    protocol: stream.protocol,
    clientGone: stream.clientGone,
    step: stream.step,
  };
  try {
    return await receive(watchedStream, (...request) => {
      slot.release();
      return applyPush(...request);
    });
  } finally {
    slot.release();
  }
}
