import { Worker } from 'node:worker_threads';

/** Shared memory of both threads: the count of inputs, the length of the current one, and its bytes. */
const headBytes = 8;
const roomBytes = 64 * 1024;

/** Limits of one input. */
export interface WatchdogLimits {
  /** CPU time of one input. Ten times as much wall time is too much as well. */
  seconds: number;
  /** Memory of the process. */
  bytes: number;
}

/** Watches the process from a thread of its own. Writes an input that exceeds a limit to a file, and kills the process. */
export class Watchdog {
  readonly #shared = new SharedArrayBuffer(headBytes + roomBytes);
  readonly #head = new Int32Array(this.#shared, 0, 2);
  readonly #input = new Uint8Array(this.#shared, headBytes);
  readonly #thread: Worker;

  constructor(limits: WatchdogLimits, file: string) {
    const watch = `
      const { workerData: { shared, limits, file } } = require('node:worker_threads');
      const head = new Int32Array(shared, 0, 2);
      let before = -1, since = Date.now(), cpu = process.cpuUsage();
      const end = (what) => {
        require('node:fs').writeFileSync(file, Buffer.from(new Uint8Array(shared, 8, Atomics.load(head, 1))));
        require('node:fs').writeSync(2, what + ': ' + file + '\\n');
        process.kill(process.pid, 'SIGKILL');
      };
      setInterval(() => {
        const used = process.memoryUsage.rss();
        if (used > limits.bytes) end('an input made the process use ' + Math.round(used / 1024 / 1024) + ' MiB');
        const now = Atomics.load(head, 0);
        if (now !== before || now === 0) { before = now; since = Date.now(); cpu = process.cpuUsage(); return; }
        const { user, system } = process.cpuUsage(cpu);
        if (user + system > limits.seconds * 1e6 || Date.now() - since > limits.seconds * 1e4)
          end('an input did not end within ' + limits.seconds + ' s');
      }, 50);`;
    this.#thread = new Worker(watch, { eval: true, workerData: { shared: this.#shared, limits, file } });
    this.#thread.unref();
  }

  /** Call it before each input runs. */
  announce(input: Buffer): void {
    this.#input.set(input.subarray(0, roomBytes));
    Atomics.store(this.#head, 1, Math.min(input.length, roomBytes));
    Atomics.add(this.#head, 0, 1);
  }

  async close(): Promise<void> {
    await this.#thread.terminate();
  }
}
