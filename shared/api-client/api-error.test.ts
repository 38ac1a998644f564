import { describe, expect, it } from 'vitest';
import { apiErrorOf } from '#shared/api-client/api-error.ts';

const answer = (status: number, headers: Record<string, string> = {}) => new Response(null, { status, headers });

describe('an API error', () => {
  it('has everything that the error envelope says', () => {
    const details = [{ path: 'name', message: 'is reserved' }, { path: 7, message: 'not valid' }, { path: 'x' }];
    const error = { code: 'validation_failed', message: 'The request is not valid.', request_id: 'req_1', details };
    expect(apiErrorOf({ error }, answer(422))).toMatchObject({
      code: 'validation_failed',
      message: 'The request is not valid.',
      status: 422,
      requestId: 'req_1',
      details: [
        { path: 'name', message: 'is reserved' },
        { path: '', message: 'not valid' },
      ],
    });
  });

  it.each([
    ['17', 17],
    ['Wed, 21 Oct 2026 07:28:00 GMT', undefined],
  ])('reads Retry-After %s as %s seconds', (header, seconds) => {
    expect(apiErrorOf({}, answer(429, { 'retry-after': header })).retryAfterSeconds).toBe(seconds);
  });

  it.each([undefined, null, 'text', [], { error: 'text' }, { error: { message: 7 } }])(
    'made of %j, which is no envelope, has the status in its message',
    (body) => {
      expect(apiErrorOf(body, answer(502))).toMatchObject({ message: 'The platform answered 502.', code: undefined });
    },
  );
});
