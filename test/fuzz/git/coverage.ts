import { type Profiler, Session } from 'node:inspector';

/** What of a part of the code has run, block by block, as V8 counts it. */
export class Coverage {
  readonly #session = new Session();
  readonly #part: string;
  readonly #seen = new Set<string>();

  /** @param part of the URL of the modules that count */
  constructor(part: string) {
    this.#part = part;
    this.#session.connect();
    this.#session.post('Profiler.enable');
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
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

  /** Blocks that ran since the last call. */
  take(): string[] {
    let scripts: Profiler.ScriptCoverage[] = [];
    this.#session.post('Profiler.takePreciseCoverage', (error, taken) => {
      if (error !== null) throw error;
      scripts = taken.result;
    });
    const blocks: string[] = [];
    for (const { url, functions } of scripts) {
      if (!url.includes(this.#part)) continue;
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
