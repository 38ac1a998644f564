import type { Socket } from 'node:net';

/** Of one turn of the event loop. A key exchange takes two or three. */
const budgetMilliseconds = 2;

/**
 * The handshakes of all connections, a few milliseconds of them a turn of the event loop. When many clients come at once, their
 * key exchanges would otherwise be worked off in a single turn, in which those who are logged in get nothing.
 */
export class HandshakeTurns {
  readonly #steps: (() => void)[] = [];
  #scheduled = false;

  /**
   * What the socket brings before the login comes to its listener in its turn, in the order of arrival; after that at once.
   * To be called once the listener, the only one so far, is there.
   */
  pace(socket: Socket, state: { authenticated(): boolean; readonly gone: AbortSignal }): void {
    const listeners = socket.listeners('data') as ((data: Buffer) => void)[];
    socket.removeAllListeners('data');
    let queued = 0;
    const give = (data: Buffer): void => {
      for (const listener of listeners) listener.call(socket, data);
    };
    socket.on('data', (data: Buffer) => {
      if (queued === 0 && state.authenticated()) return give(data);
      queued += 1;
      this.#steps.push(() => {
        queued -= 1;
        // ssh2 throws at what still comes once the connection has ended.
        if (!state.gone.aborted) give(data);
      });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#runSome();
    });
  }

  #runSome(): void {
    const end = performance.now() + budgetMilliseconds;
    do this.#steps.shift()?.();
    while (this.#steps.length > 0 && performance.now() < end);
    if (this.#steps.length > 0) this.#schedule();
  }
}
