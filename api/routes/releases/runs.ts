import { createRoute } from '@hono/zod-openapi';
import type { Api } from '#api/http/api-env.ts';
import { type StreamEvent, streamEvents } from '#api/http/event-stream.ts';
import type { StreamLimits } from '#api/http/stream-limits.ts';
import { appParams, bearer, guarded, jsonBody, refusalsOf, runParams, withBody } from '#api/openapi/schemas.ts';
import { presentRunEvent, RunEventSchema, RunInputSchema, RunRequestSchema } from '#api/resources/run.ts';
import type { RunEvent, Runs } from '#shared/core/releases/runs.ts';
import { AppError } from '#shared/errors.ts';

const tags = ['processes'];

const startRun = createRoute({
  method: 'post',
  path: '/v1/apps/{id}/runs',
  operationId: 'startRun',
  summary: 'Run a one-off command',
  description:
    'Runs a command with the image, the variables, the network and the limits of the newest release that is live or being deployed, beside ' +
    'the instances of the app. ' +
    'The answer is a stream of events: `run`, then `output` for each part of the output, then `exit`. The data of an event is a ' +
    '`RunEvent`. The command ends when the client disconnects, and after an hour at the latest. While it runs it counts as an instance. ' +
    'A user may have 20 open streams of all kinds.',
  tags,
  security: bearer,
  request: { params: appParams, body: jsonBody(RunRequestSchema, true) },
  responses: {
    200: { description: 'The command was started.', content: { 'text/event-stream': { schema: RunEventSchema } } },
    ...guarded,
    ...withBody,
    ...refusalsOf(404, 409),
  },
});

const writeRunInput = createRoute({
  method: 'post',
  path: '/v1/apps/{id}/runs/{run}/input',
  operationId: 'writeRunInput',
  summary: 'Write to the standard input of a one-off command',
  description:
    'Parts are read by the command in the order of these calls. The call waits up to 10 s while the command does not read, and then ' +
    'fails with 409 without effect: send the part again.',
  tags,
  security: bearer,
  request: { params: runParams, body: jsonBody(RunInputSchema, true) },
  responses: { 204: { description: 'Written.' }, ...guarded, ...withBody, ...refusalsOf(404, 409) },
});

export function addRunRoutes(api: Api, runs: Runs, streams: StreamLimits): void {
  api.openapi(startRun, async (c) => {
    // The answer to such a request is stored when it is complete, so that nothing would be streamed.
    if (c.req.header('idempotency-key') !== undefined)
      throw new AppError('validation_failed', 'A command that is run does not support Idempotency-Key.');
    const caller = c.get('caller');
    const { id } = c.req.valid('param');
    const request = c.req.valid('json');
    const verifyAgain = c.get('verifyAgain');
    return streamEvents(c, {
      streams,
      open: async (signal) => toEvents(await runs.startRun(caller, id, request, signal)),
      check: async () => runs.checkAccess(await verifyAgain(), id),
    });
  });

  api.openapi(writeRunInput, async (c) => {
    const { id, run } = c.req.valid('param');
    const { base64, end } = c.req.valid('json');
    const caller = c.get('caller');
    if (base64 !== '' || !end) await runs.writeInput(caller, id, run, Uint8Array.fromBase64(base64));
    if (end) await runs.writeInput(caller, id, run, null);
    return c.body(null, 204);
  });
}

async function* toEvents(events: AsyncIterable<RunEvent>): AsyncIterable<StreamEvent> {
  for await (const event of events) yield presentRunEvent(event);
}
