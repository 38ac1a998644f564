/**
 * Requests to the process that writes output to files, and its answers: one JSON object per line on a unix socket that only the
 * platform's user may open. Types only: the process is small because it loads no library.
 */
import type { OutputLimits } from './output-segments.ts';

/** Changed when a process of an earlier version cannot serve this one. */
export const outputProtocolVersion = 1;

export type OutputRequest =
  /** Creates the pipe of a stream if it is missing, or takes the one at `from`, `/proc/<pid>/fd/<number>`. */
  | { do: 'open'; base: string; limits: OutputLimits; from?: string }
  /** Answered when what was written to the pipes of streams in a directory before is in files. */
  | { do: 'sync'; directory: string }
  /** Writes what is left in the pipe of a stream, and closes it. */
  | { do: 'close'; base: string }
  | { do: 'list' }
  /** Writes what is left in all pipes, and ends the process. */
  | { do: 'stop' };

/** `fd` is a file descriptor of the answering process. */
export interface OutputStream {
  base: string;
  limits: OutputLimits;
  fd: number;
}

export interface OutputAnswer {
  id: number;
  pid: number;
  version: number;
  /** With `open`, the stream; with `list`, all; otherwise none. */
  streams: OutputStream[];
  error?: string;
}
