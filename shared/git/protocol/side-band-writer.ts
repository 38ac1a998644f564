import { dataBand, encodeBand, progressBand } from '#shared/git/protocol/side-band.ts';

const keepAliveMilliseconds = 5000;

/** Writes to a client in order, whoever writes. With side bands, progress and results share the stream. */
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

  /** The result itself: band 1, or bare when the client knows no bands. */
  data(bytes: Uint8Array): Promise<void> {
    return this.bare(this.#bands ? encodeBand(dataBand, bytes) : bytes);
  }

  /** A line for the person: git prints it at once, with `remote: ` in front. Lost when the client knows no bands or has gone. */
  progress(line: string): void {
    if (this.#bands) this.bare(encodeBand(progressBand, Buffer.from(`${line}\n`))).catch(() => undefined);
  }

  /** As it stands. */
  bare(bytes: Uint8Array): Promise<void> {
    this.#lastWriteAt = performance.now();
    const written = this.#last.then(() => this.#write(bytes));
    this.#last = written.catch(() => {
      this.#failed = true;
    });
    return written;
  }

  /** While `work` runs, the client hears something every five seconds, so that nothing on the way takes the connection for dead. */
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
