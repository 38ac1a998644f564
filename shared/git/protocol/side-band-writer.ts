import { dataBand, encodeBand, progressBand } from '#shared/git/protocol/side-band.ts';

const keepAliveMilliseconds = 5000;

/** Writes to a client, in the order of the calls. With side bands, progress and results share the stream. */
export class SideBandWriter {
  readonly #write: (chunk: Uint8Array) => Promise<void>;
  readonly #bands: boolean;
  #last: Promise<void> = Promise.resolve();
  #lastWriteAt = performance.now();
  #failed = false;

  constructor(write: (chunk: Uint8Array) => Promise<void>, bands: boolean) {
    this.#write = write;
    this.#bands = bands;
  }

  /** Writes the result: in band 1, or as it is when the client knows no side bands. */
  data(bytes: Uint8Array): Promise<void> {
    return this.bare(this.#bands ? encodeBand(dataBand, bytes) : bytes);
  }

  /** Writes a line that git prints at once after `remote: `. Dropped when the client knows no side bands or has disconnected. */
  progress(line: string): void {
    if (this.#bands) this.bare(encodeBand(progressBand, Buffer.from(`${line}\n`))).catch(() => undefined);
  }

  /** Writes bytes outside of any side band. */
  bare(bytes: Uint8Array): Promise<void> {
    this.#lastWriteAt = performance.now();
    const written = this.#last.then(() => this.#write(bytes));
    this.#last = written.catch(() => {
      this.#failed = true;
    });
    return written;
  }

  /** Sends an empty packet every five seconds while `work` runs, so that no proxy closes an idle connection. */
  async keepAliveDuring<T>(work: Promise<T>): Promise<T> {
    if (!this.#bands) return await work;
    const timer = setInterval(() => {
      if (this.#failed || performance.now() - this.#lastWriteAt < keepAliveMilliseconds) return;
      this.bare(encodeBand(progressBand, new Uint8Array(0))).catch(() => undefined);
    }, keepAliveMilliseconds / 5);
    try {
      return await work;
    } finally {
      clearInterval(timer);
    }
  }
}
