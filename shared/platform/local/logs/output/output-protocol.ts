/** Requests to the process that writes output to files, and its answers: one JSON object per line on a unix socket. */
import { z } from 'zod';

/** Changed when a process of an earlier version cannot serve this one. */
export const outputProtocolVersion = 1;

const limitsSchema = z.object({ segmentBytes: z.number(), retainedBytes: z.number() });

export const outputRequestSchema = z.object({
  id: z.number(),
  request: z.discriminatedUnion('do', [
    /** Creates the pipe of a stream if it is missing, or takes the one at `from`, `/proc/<pid>/fd/<number>`. */
    z.object({ do: z.literal('open'), base: z.string(), limits: limitsSchema, from: z.string().optional() }),
    /** Answered when what was written to the pipes of streams in a directory before is in files. */
    z.object({ do: z.literal('sync'), directory: z.string() }),
    /** Writes what is left in the pipe of a stream, and closes it. */
    z.object({ do: z.literal('close'), base: z.string() }),
    z.object({ do: z.literal('list') }),
    /** Writes what is left in all pipes, and ends the process. */
    z.object({ do: z.literal('stop') }),
  ]),
});

const streamSchema = z.object({ base: z.string(), limits: limitsSchema, fd: z.number() });

export const outputAnswerSchema = z.object({
  id: z.number(),
  pid: z.number(),
  version: z.number(),
  /** With `open`, the stream; with `list`, all; otherwise none. `fd` is a file descriptor of the answering process. */
  streams: z.array(streamSchema),
  error: z.string().optional(),
});

export type OutputRequest = z.infer<typeof outputRequestSchema>['request'];
export type OutputAnswer = z.infer<typeof outputAnswerSchema>;
export type OutputStream = z.infer<typeof streamSchema>;
