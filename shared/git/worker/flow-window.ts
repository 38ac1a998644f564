import { windowBytes } from '#shared/git/worker/messages.ts';

/** Back pressure over a message port: the sender waits while more than a window of bytes is under way. */
export class FlowWindow {
  #underWay = 0;
  #wake: (() => void) | undefined;
  #closed: Error | undefined;

  /** Resolves when another chunk may be sent. Rejects once closed. */
  async reserve(bytes: number): Promise<void> {
    while (this.#closed === undefined && this.#underWay >= windowBytes) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#closed !== undefined) throw this.#closed;
    this.#underWay += bytes;
  }

  taken(bytes: number): void {
    this.#underWay -= bytes;
    this.#wake?.();
  }

  close(reason: Error): void {
    this.#closed = reason;
    this.#wake?.();
  }
}
