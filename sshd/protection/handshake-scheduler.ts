import type { Socket } from 'node:net';
import { interceptInput } from '#sshd/ssh2/internals.ts';

/** Time for handshakes in one iteration of the event loop. A key exchange takes two or three milliseconds. */
const budgetMilliseconds = 2;

/**
 * Spreads the handshakes of all connections over iterations of the event loop. When many clients connect at once, their
 * key exchanges would otherwise run in a single iteration, and those who are logged in would wait for all of them.
 */
export class HandshakeScheduler {
  readonly #steps: (() => void)[] = [];
  #scheduled = false;

  /**
   * Delays what the socket receives before the login until its turn in order of arrival; after the login it is passed on
   * at once. To be called once ssh2 has the socket and before anything else listens.
   */
  schedule(socket: Socket, state: { authenticated(): boolean; readonly gone: AbortSignal }): void {
    const passOn = interceptInput(socket);
    let queued = 0;
    socket.on('data', (data: Buffer) => {
      if (queued === 0 && state.authenticated()) return passOn(data);
      queued += 1;
      this.#steps.push(() => {
        queued -= 1;
        // ssh2 throws at input that arrives after the connection has ended.
        if (!state.gone.aborted) passOn(data);
      });
      this.#runSoon();
    });
  }

  #runSoon(): void {
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
    if (this.#steps.length > 0) this.#runSoon();
  }
}
