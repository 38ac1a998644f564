/** From how a step ended to one line that says what failed and how to fix it. */
import { knownCauses } from './known-causes.ts';

/** A file system of a build. */
export interface FullestVolume {
  readonly isFull: boolean;
  /** What to say when a program found no room in it. */
  readonly message: string;
}

export interface StepFailure {
  readonly argv: readonly string[];
  readonly exitCode: number;
  readonly outOfMemory: boolean;
  readonly diskFull: boolean;
  /** Of the build's own file systems the one with the least room; undefined where it has none. */
  readonly volume: FullestVolume | undefined;
  /** The tool's last lines. */
  readonly tail: readonly string[];
  readonly memoryBytes: number;
}

/** The cause of a failed step in one line, from its exit code and the end of its output. */
export function explainFailure(failure: StepFailure): string {
  const text = failure.tail.join('\n');
  if (failure.outOfMemory || /JavaScript heap out of memory|MemoryError|cannot allocate memory/i.test(text)) {
    return `Out of memory: a build may use ${Math.round(failure.memoryBytes / 1024 / 1024)} MiB, and \`${describe(failure.argv)}\` wanted more.`;
  }
  const lacksRoom = /ENOSPC|[Nn]o space left on device/.test(text);
  if (!failure.diskFull && failure.volume !== undefined && (failure.volume.isFull || lacksRoom)) return failure.volume.message;
  if (failure.diskFull || lacksRoom) {
    return "The platform's disk is full. Nothing is wrong with the app: its operator has to make room, then push again.";
  }
  if (/File too large|EFBIG/.test(text)) return 'A file grew larger than a build may write.';
  for (const { pattern, cause } of knownCauses) {
    const match = pattern.exec(text);
    if (match !== null) return cause(match);
  }
  return `\`${describe(failure.argv)}\` exited with code ${failure.exitCode}.`;
}

/** The command as a person would type it: programs without their paths, package managers without their wrapping. */
function describe(argv: readonly string[]): string {
  const wrapped = argv.indexOf('--');
  const shown = argv[1] === 'exec' && wrapped > 0 ? argv.slice(wrapped + 1) : argv;
  return shown.map((word, index) => (index === 0 ? word.slice(word.lastIndexOf('/') + 1) : word)).join(' ');
}
