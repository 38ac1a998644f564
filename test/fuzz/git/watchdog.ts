import { Worker } from 'node:worker_threads';

/** Shared between the one who feeds and the one who watches: count of inputs, length of the one that runs, its bytes. */
const headBytes = 8;
const roomBytes = 64 * 1024;

/** Watches from a thread of its own: an input that never ends is written to a file, and the process ended. */
export class Watchdog {
  readonly #shared = new SharedArrayBuffer(headBytes + roomBytes);
  readonly #head = new Int32Array(this.#shared, 0, 2);
  readonly #input = new Uint8Array(this.#shared, headBytes);
  readonly #thread: Worker;

  constructor(seconds: number, file: string) {
    const watch = `
      const { workerData: { shared, seconds, file } } = require('node:worker_threads');
      const head = new Int32Array(shared, 0, 2);
      let before = -1, since = Date.now();
      setInterval(() => {
        const now = Atomics.load(head, 0);
        if (now !== before) { before = now; since = Date.now(); return; }
        if (now === 0 || Date.now() - since < seconds * 1000) return;
        require('node:fs').writeFileSync(file, Buffer.from(new Uint8Array(shared, 8, Atomics.load(head, 1))));
        console.error('an input did not end within ' + seconds + ' s: ' + file);
        process.kill(process.pid, 'SIGKILL');
      }, 1000);`;
    this.#thread = new Worker(watch, { eval: true, workerData: { shared: this.#shared, seconds, file } });
    this.#thread.unref();
  }

  announce(input: Buffer): void {
    this.#input.set(input.subarray(0, roomBytes));
    Atomics.store(this.#head, 1, Math.min(input.length, roomBytes));
    Atomics.add(this.#head, 0, 1);
  }

  async close(): Promise<void> {
    await this.#thread.terminate();
  }
}
