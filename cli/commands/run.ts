import { appFlags, defineCommand } from '#cli/command-line/command.ts';
import type { Context } from '#cli/context/context.ts';
import { CliError } from '#cli/errors/cli-error.ts';
import { sendInput } from '#cli/terminal/send-input.ts';
import { isInteractive } from '#cli/terminal/terminal.ts';
import { ApiError, apiErrorOf } from '#shared/api-client/api-error.ts';
import { succeeded } from '#shared/api-client/client.ts';
import { readEvents } from '#shared/api-client/event-stream.ts';
import type { components } from '#shared/api-client/openapi-types.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';

type RunEvent = components['schemas']['RunEvent'];

const usualSize = { columns: 80, rows: 24 };
const retrySeconds = 1;

export const run = defineCommand({
  name: 'run',
  group: 'Processes',
  summary: 'run a one-off command in the app',
  args: { command: { kind: 'command', summary: 'the command and its arguments' } },
  flags: {
    ...appFlags,
    'no-tty': { kind: 'boolean', summary: 'run it without a terminal' },
    'no-input': { kind: 'boolean', short: 'n', summary: 'do not read standard input' },
  },
  details: [
    'The command runs with the code, the variables and the network of the newest release that is live or being deployed, and counts as one instance. Its exit code is that of `paas run`.',
    'One word is a shell command line; several words are passed on as they are. Flags of paas must come before the command.',
    'In a terminal the command gets a terminal, too. The command ends with `paas run`, and after an hour at the latest.',
  ],
  examples: [
    'paas run npm run migrate',
    'paas run -a hello bash',
    `paas run 'echo $DATABASE_URL | wc -c'`,
    'paas run psql < dump.sql',
  ],
  async run(context, { args, flags }) {
    const app = await context.appName(flags);
    const { terminal } = context;
    const input = !flags['no-input'];
    const withTerminal = input && !flags['no-tty'] && isInteractive(terminal) && terminal.stdout.isTTY === true;
    const [only = ''] = args.command;
    const request = omitUndefined({
      command: args.command.length === 1 ? only : [...args.command],
      input,
      terminal: withTerminal
        ? omitUndefined({
            columns: terminal.stdout.columns ?? usualSize.columns,
            rows: terminal.stdout.rows ?? usualSize.rows,
            name: context.env('TERM'),
          })
        : undefined,
    });
    return follow(context, app, request);
  },
});

/** Prints the output, sends the input, and resolves with the exit code. */
async function follow(context: Context, app: string, request: { input: boolean; terminal?: object }): Promise<number> {
  const { host, send } = await context.connection();
  const { stdin } = context.terminal;
  const response = await send(
    new Request(`${host}/v1/apps/${encodeURIComponent(app)}/runs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
      body: JSON.stringify(request),
    }),
  );
  if (!response.ok || response.body === null) throw apiErrorOf(await response.json(), response);
  const over = new AbortController();
  const inputFailed = Promise.withResolvers<never>();
  inputFailed.promise.catch(() => undefined);
  const setRaw = (raw: boolean): void => {
    if (request.terminal !== undefined && stdin.isTTY === true) stdin.setRawMode(raw);
  };
  let sending: Promise<void> | undefined;
  const startInput = (id: string): void => {
    setRaw(true);
    sending = sendInput(stdin, (bytes) => writeInput(context, { app, run: id }, bytes, over.signal), over.signal);
    sending.catch(inputFailed.reject);
  };
  const read = async (body: ReadableStream<Uint8Array>): Promise<number> => {
    for await (const { event, data } of readEvents(body)) {
      if (event === 'error') throw apiErrorOf(JSON.parse(data), new Response(null, { status: 500 }));
      const { id, stream, base64 = '', exit_code: exitCode } = JSON.parse(data) as RunEvent;
      if (exitCode !== undefined) return exitCode;
      if (stream !== undefined) context.terminal[stream].write(Uint8Array.fromBase64(base64));
      if (id !== undefined && request.input) startInput(id);
    }
    throw new CliError('The connection was lost, and the command was ended.', {
      hint: 'A command runs for an hour at most. Run longer work as a process type of the app.',
    });
  };
  try {
    return await Promise.race([read(response.body), inputFailed.promise]);
  } finally {
    over.abort();
    await sending?.catch(() => undefined);
    setRaw(false);
  }
}

/** Repeats a part that the command has not read yet. A command that has ended needs no input. */
async function writeInput(
  context: Context,
  path: { app: string; run: string },
  bytes: Uint8Array | null,
  over: AbortSignal,
): Promise<void> {
  const api = await context.api();
  const body = bytes === null ? { base64: '', end: true } : { base64: bytes.toBase64(), end: false };
  while (!over.aborted) {
    try {
      return await succeeded(
        api.POST('/v1/apps/{id}/runs/{run}/input', { params: { path: { id: path.app, run: path.run } }, body }),
      );
    } catch (error) {
      if (!(error instanceof ApiError) || over.aborted) throw error;
      if (error.code === 'not_found') return;
      if (error.code !== 'conflict' && error.code !== 'rate_limited') throw error;
      await new Promise((resolve) => setTimeout(resolve, (error.retryAfterSeconds ?? retrySeconds) * 1000));
    }
  }
}
