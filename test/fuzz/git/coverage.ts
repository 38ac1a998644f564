import { type Profiler, Session } from 'node:inspector';

/** What of a part of the code has run, block by block, as V8 counts it. */
export class Coverage {
  readonly #session = new Session();
  readonly #parts: readonly string[];
  readonly #seen = new Set<string>();
  #runs = false;

  /** @param parts of the URLs of the modules that count, any of them */
  constructor(...parts: readonly string[]) {
    this.#parts = parts;
    this.#session.connect();
    this.#session.post('Profiler.enable');
  }

  /** From now on. Counting slows what is counted. */
  start(): void {
    if (this.#runs) return;
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
    this.#runs = true;
  }

  stop(): void {
    if (this.#runs) this.#session.post('Profiler.stopPreciseCoverage');
    this.#runs = false;
  }

  get blocks(): number {
    return this.#seen.size;
  }

  /** Blocks that ran since the last call and never before. */
  takeNew(): string[] {
    const fresh = this.take().filter((block) => !this.#seen.has(block));
    for (const block of fresh) this.#seen.add(block);
    return fresh;
  }

  /** Blocks that ran since the last call; none while it is stopped. */
  take(): string[] {
    if (!this.#runs) return [];
    let scripts: Profiler.ScriptCoverage[] = [];
    this.#session.post('Profiler.takePreciseCoverage', (error, taken) => {
      if (error !== null) throw error;
      scripts = taken.result;
    });
    const blocks: string[] = [];
    for (const { url, functions } of scripts) {
      if (!this.#parts.some((part) => url.includes(part))) continue;
      const file = url.slice(url.lastIndexOf('/') + 1);
      for (const { ranges } of functions) {
        for (const { startOffset, endOffset, count } of ranges) if (count > 0) blocks.push(`${file}:${startOffset}-${endOffset}`);
      }
    }
    return blocks;
  }

  close(): void {
    this.#session.disconnect();
  }
}
