import { Worker } from 'node:worker_threads';

/** Shared between the one who feeds and the one who watches: count of inputs, length of the one that runs, its bytes. */
const headBytes = 8;
const roomBytes = 64 * 1024;

export interface WatchdogLimits {
  /** Of the processor's time for one input. On a busy machine the clock says nothing; ten times as much of it is too much too. */
  seconds: number;
  /** That the process may hold. */
  bytes: number;
}

/** Watches from a thread of its own: an input that takes too much is written to a file, and the process ended. */
export class Watchdog {
  readonly #shared = new SharedArrayBuffer(headBytes + roomBytes);
  readonly #head = new Int32Array(this.#shared, 0, 2);
  readonly #input = new Uint8Array(this.#shared, headBytes);
  readonly #thread: Worker;

  constructor(limits: WatchdogLimits, file: string) {
    const watch = `
      const { workerData: { shared, limits, file } } = require('node:worker_threads');
      const head = new Int32Array(shared, 0, 2);
      let before = -1, since = Date.now(), used = process.cpuUsage();
      const end = (what) => {
        require('node:fs').writeFileSync(file, Buffer.from(new Uint8Array(shared, 8, Atomics.load(head, 1))));
        require('node:fs').writeSync(2, what + ': ' + file + '\\n');
        process.kill(process.pid, 'SIGKILL');
      };
      setInterval(() => {
        const held = process.memoryUsage.rss();
        if (held > limits.bytes) end('an input made the process hold ' + Math.round(held / 1024 / 1024) + ' MiB');
        const now = Atomics.load(head, 0);
        if (now !== before || now === 0) { before = now; since = Date.now(); used = process.cpuUsage(); return; }
        const { user, system } = process.cpuUsage(used);
        if (user + system > limits.seconds * 1e6 || Date.now() - since > limits.seconds * 1e4)
          end('an input did not end within ' + limits.seconds + ' s');
      }, 50);`;
    this.#thread = new Worker(watch, { eval: true, workerData: { shared: this.#shared, limits, file } });
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
