import type { Clock } from '#shared/clock.ts';
import type { ApplyPush, GitStream, PushEnd } from '#shared/git/git-storage.ts';

/** Turns are looked at only while somebody waits for one. */
const lookMilliseconds = 50;
/** A client that lets us wait for so many looks is busy by itself, or not there: others go on meanwhile. */
const idleLooks = 4;
/** A long push holds nobody up for longer. */
const longestTurnLooks = 20;
/** Whoever has waited for so long is let in whatever the others do, so that nobody can shut the door on the rest. */
const longestWaitLooks = 60;

/** One push's leave to bring its pack. */
export interface PushTurn {
  /** The same bytes. While the client is waited for, its turn may pass to somebody else; its push goes on all the same. */
  watch(input: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
  /** Others may go on. Again is harmless. */
  end(): void;
}

interface Held {
  looks: number;
  awaitsClient: boolean;
  /** Since the client last sent something. */
  idleLooks: number;
}

interface Queued {
  looks: number;
  admit(held: Held): void;
}

/**
 * Pushes that come at once bring their packs a few at a time. More of them than there are cores would not end earlier: they
 * would only hold more memory, and keep the event loop from its core.
 */
export class PushTurns {
  readonly #atOnce: number;
  readonly #clock: Clock;
  readonly #held = new Set<Held>();
  readonly #queue: Queued[] = [];
  #looking = false;

  constructor(atOnce: number, clock: Clock) {
    this.#atOnce = atOnce;
    this.#clock = clock;
  }

  /** Resolves when it is this push's turn, in the order of arrival; at once when the client has gone. */
  async take(gone: AbortSignal): Promise<PushTurn> {
    const held = this.#held.size < this.#atOnce || gone.aborted ? this.#admit() : await this.#wait(gone);
    return {
      watch: (input) => ({ [Symbol.asyncIterator]: () => watched(held, input[Symbol.asyncIterator]()) }),
      end: () => this.#end(held),
    };
  }

  #admit(queued?: Queued): Held {
    const held: Held = { looks: 0, awaitsClient: false, idleLooks: 0 };
    this.#held.add(held);
    queued?.admit(held);
    return held;
  }

  #wait(gone: AbortSignal): Promise<Held> {
    return new Promise((resolve) => {
      const queued: Queued = {
        looks: 0,
        admit: (held) => {
          gone.removeEventListener('abort', leave);
          resolve(held);
        },
      };
      const leave = (): void => {
        this.#queue.splice(this.#queue.indexOf(queued), 1);
        this.#admit(queued);
      };
      gone.addEventListener('abort', leave, { once: true });
      this.#queue.push(queued);
      if (!this.#looking) void this.#look();
    });
  }

  async #look(): Promise<void> {
    this.#looking = true;
    while (this.#queue.length > 0) {
      await this.#clock.sleep(lookMilliseconds);
      for (const held of this.#held) {
        held.looks++;
        if (held.awaitsClient) held.idleLooks++;
        if (held.looks >= longestTurnLooks || held.idleLooks >= idleLooks) this.#end(held);
      }
      for (const queued of this.#queue) queued.looks++;
      while ((this.#queue[0]?.looks ?? 0) >= longestWaitLooks) this.#admit(this.#queue.shift());
    }
    this.#looking = false;
  }

  #end(held: Held): void {
    this.#held.delete(held);
    if (this.#held.size < this.#atOnce && this.#queue.length > 0) this.#admit(this.#queue.shift());
  }
}

function watched(held: Held, input: AsyncIterator<Uint8Array>): AsyncIterator<Uint8Array> {
  return {
    next: async () => {
      held.awaitsClient = true;
      try {
        return await input.next();
      } finally {
        held.awaitsClient = false;
        held.idleLooks = 0;
      }
    },
  };
}

/** Serves a push in its turn, which ends when the pack is in and sound: what the push then causes may take minutes. */
export async function receiveInTurn(
  turns: PushTurns,
  stream: GitStream,
  applyPush: ApplyPush,
  receive: (stream: GitStream, applyPush: ApplyPush) => Promise<PushEnd>,
): Promise<PushEnd> {
  if (stream.step === 'advertise') return receive(stream, applyPush);
  const turn = await turns.take(stream.clientGone);
  const watchedStream: GitStream = {
    input: turn.watch(stream.input),
    write: (chunk) => stream.write(chunk),
    protocol: stream.protocol,
    clientGone: stream.clientGone,
    ...(stream.step === undefined ? {} : { step: stream.step }),
  };
  try {
    return await receive(watchedStream, (...request) => {
      turn.end();
      return applyPush(...request);
    });
  } finally {
    turn.end();
  }
}
