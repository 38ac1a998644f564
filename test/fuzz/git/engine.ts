import { AppError } from '#shared/errors.ts';
import { GitFault } from '#shared/git/git-fault.ts';
import { mutate } from '#shared/git/testing/mutation.ts';
import type { Coverage } from '#test/fuzz/git/coverage.ts';
import { pick, type Random } from '#test/support/random.ts';

/** Code that reads what clients send. */
export interface FuzzTarget {
  name: string;
  /** Valid inputs to begin with. */
  seeds: readonly Buffer[];
  /** Words of the format, which random bytes would hardly ever form. */
  words?: readonly Buffer[];
  /** How many inputs run before coverage is read. */
  batch?: number;
  /** Share of the time, in proportion to the other targets. Default: 1. */
  share?: number;
  /**
   * Reads an input.
   * @throws GitFault or AppError when it rejects the input; any other error is a finding
   */
  run(input: Buffer): Promise<void> | void;
  /** Called now and then and at the end, for checks of many inputs at once. @throws Error for a finding */
  settle?(): Promise<void>;
  close?(): Promise<void>;
}

/** The results of a target. */
export interface FuzzResult {
  inputs: number;
  accepted: number;
  rejected: number;
  /** Wall time of the slowest input. */
  slowestMilliseconds: number;
  findings: { input: Buffer; error: Error }[];
}

/** What observes a fuzzer. */
export interface FuzzerOptions {
  coverage?: Coverage;
  /** Called with each input before it runs, so that one that never ends is known. */
  announce?(input: Buffer): void;
}

const longestInput = 64 * 1024;

/** Runs a target with mutated inputs, and keeps those that run code which no other input has run. */
export class Fuzzer {
  readonly target: FuzzTarget;
  readonly result: FuzzResult = { inputs: 0, accepted: 0, rejected: 0, slowestMilliseconds: 0, findings: [] };
  readonly #corpus: Buffer[];
  readonly #random: Random;
  readonly #coverage: Coverage | undefined;
  readonly #announce: (input: Buffer) => void;

  constructor(target: FuzzTarget, random: Random, { coverage, announce = () => undefined }: FuzzerOptions = {}) {
    this.target = target;
    this.#random = random;
    this.#coverage = coverage;
    this.#announce = announce;
    this.#corpus = [...target.seeds];
  }

  get corpusSize(): number {
    return this.#corpus.length;
  }

  /** Runs so many inputs. Keeps those that run new code while coverage is being collected. */
  async run(count: number): Promise<void> {
    for (let done = 0; done < count; ) {
      const batch = Array.from({ length: Math.min(this.target.batch ?? 500, count - done) }, () => this.#next());
      for (const input of batch) {
        this.result.inputs++;
        this.result[await this.#try(input)]++;
      }
      done += batch.length;
      const fresh = new Set(this.#coverage?.takeNew());
      if (fresh.size > 0) await this.#keep(batch, fresh);
    }
    await this.target.settle?.().catch((error: unknown) => this.#found(Buffer.alloc(0), error));
  }

  /** Finds the inputs of a batch that ran new code. Runs halves again, since reading coverage takes as long as many inputs. */
  async #keep(batch: readonly Buffer[], fresh: ReadonlySet<string>): Promise<void> {
    const [only] = batch;
    if (batch.length === 1 && only !== undefined) {
      this.#corpus.push(only);
      return;
    }
    const half = batch.slice(0, Math.ceil(batch.length / 2));
    for (const input of half) await this.#try(input);
    const inHalf = new Set(this.#coverage?.take().filter((block) => fresh.has(block)));
    if (inHalf.size > 0) await this.#keep(half, inHalf);
    const rest = new Set([...fresh].filter((block) => !inHalf.has(block)));
    if (rest.size > 0 && batch.length > half.length) await this.#keep(batch.slice(half.length), rest);
  }

  #next(): Buffer {
    const random = this.#random;
    // The inputs that were found last lead to new ones most often.
    const recent = random(2) === 0 ? Math.max(0, this.#corpus.length - 20) : 0;
    const parent = pick(random, this.#corpus.slice(recent));
    const other = random(8) === 0 ? pick(random, this.#corpus) : undefined;
    const crossed =
      other === undefined
        ? parent
        : Buffer.concat([parent.subarray(0, random(parent.length + 1)), other.subarray(random(other.length + 1))]);
    return mutate(crossed.length === 0 ? parent : crossed, random, this.target.words).subarray(0, longestInput);
  }

  async #try(input: Buffer): Promise<'accepted' | 'rejected'> {
    this.#announce(input);
    const started = performance.now();
    try {
      await this.target.run(input);
      return 'accepted';
    } catch (error) {
      if (!(error instanceof GitFault || error instanceof AppError)) this.#found(input, error);
      return 'rejected';
    } finally {
      this.result.slowestMilliseconds = Math.max(this.result.slowestMilliseconds, performance.now() - started);
    }
  }

  #found(input: Buffer, cause: unknown): void {
    const error = cause instanceof Error ? cause : new Error(String(cause));
    const known = this.result.findings.some((finding) => finding.error.message === error.message);
    if (!known && this.result.findings.length < 20) this.result.findings.push({ input: Buffer.from(input), error });
  }
}
