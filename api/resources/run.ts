import { z } from '@hono/zod-openapi';
import type { RunEvent } from '#shared/core/releases/runs.ts';

const longestCommand = 8192;
const mostWords = 100;
const terminalSize = z.int().min(1).max(1000);
/** In base64; so that the whole body stays below 1 MiB. */
const longestInput = 1024 * 1000;

const word = z
  .string()
  .min(1)
  .max(longestCommand)
  .regex(/^[^\0]*$/, 'must not contain NUL');

export const RunRequestSchema = z.object({
  command: z
    .union([word, z.array(word).min(1).max(mostWords)])
    .openapi({ description: 'A shell command line, or words that no shell interprets.', example: 'npm run migrate' }),
  input: z
    .boolean()
    .default(false)
    .openapi({ description: 'Whether the command gets a standard input from `writeRunInput`. Otherwise it is empty.' }),
  terminal: z
    .object({
      columns: terminalSize,
      rows: terminalSize,
      name: z
        .string()
        .regex(/^[A-Za-z0-9._+-]{1,64}$/)
        .default('xterm-256color'),
    })
    .optional()
    .openapi({
      description:
        'The command runs in a terminal of this size, whose output is all `stdout`. Its image must have the program `script`. `name` is its TERM.',
      example: { columns: 80, rows: 24, name: 'xterm-256color' },
    }),
});

export const RunInputSchema = z.object({
  base64: z
    .base64()
    .max(longestInput)
    .default('')
    .openapi({ description: 'The next bytes of the standard input, in base64.', example: 'aGVsbG8K' }),
  end: z.boolean().default(false).openapi({ description: 'Ends the standard input after these bytes.' }),
});

/** What an event of a run says. */
export const RunEventSchema = z
  .object({
    id: z.string().optional().openapi({ format: 'uuid', description: 'Event `run`, the first: id of the run.' }),
    release_version: z.int().optional().openapi({ description: 'Event `run`.' }),
    stream: z.enum(['stdout', 'stderr']).optional().openapi({ description: 'Event `output`.' }),
    base64: z.string().optional().openapi({ description: 'Event `output`: what was printed, in base64.', example: 'aGVsbG8K' }),
    exit_code: z.int().optional().openapi({
      description: 'Event `exit`, the last: exit code of the command; 128 + n if signal n ended it.',
      example: 0,
    }),
  })
  .openapi('RunEvent');

export function presentRunEvent(event: RunEvent): { event: 'run' | 'output' | 'exit'; data: z.infer<typeof RunEventSchema> } {
  if ('id' in event) return { event: 'run', data: { id: event.id, release_version: event.releaseVersion } };
  if ('exitCode' in event) return { event: 'exit', data: { exit_code: event.exitCode } };
  return { event: 'output', data: { stream: event.stream, base64: event.bytes.toBase64() } };
}
