import { describe, expect, it } from 'vitest';
import { toCliError } from '#cli/errors/api-failure.ts';
import { apiErrorOf, ForeignAnswerError, UnreachableError } from '#shared/api-client/api-error.ts';

function refused(code: string, status: number, more: object = {}, headers: Record<string, string> = {}) {
  const error = { code, message: 'The request is not valid.', request_id: 'req_1', ts: '2026-03-01T12:00:00.000Z', ...more };
  return toCliError(apiErrorOf({ error }, new Response(null, { status, headers })));
}

describe('a refused request', () => {
  it.each([
    ['unauthorized', 401, 3],
    ['forbidden', 403, 3],
    ['not_found', 404, 4],
    ['conflict', 409, 5],
    ['validation_failed', 422, 2],
    ['rate_limited', 429, 7],
    ['internal', 500, 1],
    ['something_new', 418, 1],
  ])('with code %s and status %i ends with exit code %i', (code, status, exitCode) => {
    expect(refused(code, status)).toMatchObject({ exitCode, message: 'The request is not valid.' });
  });

  it('hints at the details that its message does not contain', () => {
    const details = [
      { path: 'name', message: 'is reserved' },
      { path: '', message: 'not valid' },
      { path: 'x', message: 7 },
    ];
    expect(refused('validation_failed', 422, { details })?.hint).toBe('name: is reserved');
  });

  it('by a rate limit says when to try again', () => {
    expect(refused('rate_limited', 429, {}, { 'retry-after': '17' })?.hint).toBe('Try again in 17 s.');
  });

  it('by an internal error names the request', () => {
    expect(refused('internal', 500)?.hint).toContain('req_1');
  });

  it('cannot control the terminal by its text', () => {
    const evil = 'a\u001b[2Jb\nc';
    expect(refused('conflict', 409, { message: evil })?.message).toBe('ab c');
    expect(refused('internal', 500, { request_id: evil })?.hint).toContain('ab c');
    expect(refused('conflict', 409, { details: [{ path: evil, message: evil }] })?.hint).toBe('ab c: ab c');
  });
});

it('finds the reason of a failed fetch in its innermost cause, also when several addresses were tried', () => {
  const cause = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
  const error = new TypeError('fetch failed', { cause: new AggregateError([cause, cause]) });
  expect(toCliError(new UnreachableError('http://localhost:8080', error))).toMatchObject({
    message: 'Cannot reach the platform at http://localhost:8080: nothing listens there.',
    exitCode: 6,
  });
});

it('says how to trust a certificate authority of one’s own', () => {
  const cause = Object.assign(new Error('x'), { code: 'SELF_SIGNED_CERT_IN_CHAIN' });
  const error = new UnreachableError('https://localhost:8443', new TypeError('fetch failed', { cause }));
  expect(toCliError(error)?.hint).toContain('NODE_EXTRA_CA_CERTS');
});

it('an answer that comes from no platform ends with exit code 6', () => {
  expect(toCliError(new ForeignAnswerError('http://localhost:8080', 200))).toMatchObject({
    message: 'http://localhost:8080 answers with status 200, but not as a paas platform does.',
    exitCode: 6,
  });
});

it('an error of another kind is left alone', () => {
  expect(toCliError(new Error('a bug'))).toBeUndefined();
});
