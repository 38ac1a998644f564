import { describe, expect, it } from 'vitest';
import { failureOf, unreachable } from '#cli/api-errors.ts';

function answer(status: number, headers: Record<string, string> = {}): Response {
  return new Response(null, { status, headers });
}
function envelope(code: string, more: object = {}): object {
  return { error: { code, message: 'The request is not valid.', request_id: 'req_1', ts: '2026-03-01T12:00:00.000Z', ...more } };
}

describe('a refusal', () => {
  it.each([
    ['unauthorized', 401, 3],
    ['forbidden', 403, 3],
    ['not_found', 404, 4],
    ['conflict', 409, 5],
    ['validation_failed', 422, 2],
    ['rate_limited', 429, 7],
    ['internal', 500, 1],
    ['something_new', 418, 1],
  ])('%s ends with an exit code of its own', (code, status, exitCode) => {
    expect(failureOf(envelope(code), answer(status))).toMatchObject({ code, exitCode, message: 'The request is not valid.' });
  });

  it('says what the details add to its message, and no more', () => {
    const details = [
      { path: 'name', message: 'is reserved' },
      { path: '', message: 'not valid' },
      { path: 'x', message: 7 },
    ];
    expect(failureOf(envelope('validation_failed', { details }), answer(422)).hint).toBe('name: is reserved');
  });

  it('by a limit says when to try again', () => {
    expect(failureOf(envelope('rate_limited'), answer(429, { 'retry-after': '17' })).hint).toBe('Try again in 17 s.');
  });

  it('that is a fault of the platform names the request', () => {
    expect(failureOf(envelope('internal'), answer(500)).hint).toContain('req_1');
  });

  it.each([undefined, null, 'text', [], { error: 'text' }, { error: { message: 7 } }])(
    'in another form (%j) is told by its status',
    (body) => {
      expect(failureOf(body, answer(502)).message).toBe('The platform answered 502.');
    },
  );

  it('cannot drive the terminal by its words', () => {
    expect(failureOf(envelope('conflict', { message: 'a\u001b[2Jb\nc' }), answer(409)).message).toBe('ab c');
  });
});

it('finds the reason of a failed fetch under all that wraps it, one address of several', () => {
  const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
  const error = new TypeError('fetch failed', { cause: new AggregateError([refused, refused]) });
  expect(unreachable('http://localhost:8080', error)).toMatchObject({
    message: 'Cannot reach the platform at http://localhost:8080: nothing listens there.',
    exitCode: 6,
  });
});

it('says how to trust a certificate authority of one’s own', () => {
  const error = new TypeError('fetch failed', { cause: Object.assign(new Error('x'), { code: 'SELF_SIGNED_CERT_IN_CHAIN' }) });
  expect(unreachable('https://localhost:8443', error).hint).toContain('NODE_EXTRA_CA_CERTS');
});
