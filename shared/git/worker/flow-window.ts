import { windowBytes } from '#shared/git/worker/messages.ts';

/** Back pressure over a message port: the sender waits while a window of bytes is in flight. */
export class FlowWindow {
  #inFlight = 0;
  #wake: (() => void) | undefined;
  #closed: Error | undefined;

  /** Resolves when another chunk may be sent, and counts it as sent. Rejects once the window is closed. */
  async reserve(bytes: number): Promise<void> {
    while (this.#closed === undefined && this.#inFlight >= windowBytes) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#closed !== undefined) throw this.#closed;
    this.#inFlight += bytes;
  }

  /** The receiver has taken so many bytes. */
  acknowledge(bytes: number): void {
    this.#inFlight -= bytes;
    this.#wake?.();
  }

  /** Rejects all waiting and later calls of `reserve`. */
  close(reason: Error): void {
    this.#closed = reason;
    this.#wake?.();
  }
}
