import { type Profiler, Session } from 'node:inspector';

/** Which blocks of some modules have run, as V8 counts them. */
export class Coverage {
  readonly #session = new Session();
  readonly #parts: readonly string[];
  readonly #seen = new Set<string>();
  #runs = false;

  /** @param parts modules whose URLs contain one of these count */
  constructor(...parts: readonly string[]) {
    this.#parts = parts;
    this.#session.connect();
    this.#session.post('Profiler.enable');
  }

  /** Starts counting, which slows the code. */
  start(): void {
    if (this.#runs) return;
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
    this.#runs = true;
  }

  stop(): void {
    if (this.#runs) this.#session.post('Profiler.stopPreciseCoverage');
    this.#runs = false;
  }

  /** How many blocks have run so far. */
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
    this.#session.post('Profiler.takePreciseCoverage', (error, result) => {
      if (error !== null) throw error;
      scripts = result.result;
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
