/** The attacker's app: POST / with an attempt runs it and answers with its claim. */
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { type AttemptCall, attempt } from './attempt.ts';

createServer((request, response) => {
  void (async () => {
    if (request.method !== 'POST') return response.end('here');
    const call = JSON.parse(await text(request)) as AttemptCall;
    response.end(JSON.stringify({ claim: (await attempt(call)) ?? null }));
  })();
}).listen(Number(process.env['PORT']), '0.0.0.0');
process.on('SIGTERM', () => process.exit(0));
