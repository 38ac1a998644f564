import { describeIdempotencyKeys } from '#shared/idempotency/contract/idempotency.ts';
import { createFakeIdempotencyKeys } from '#shared/idempotency/fake-idempotency.ts';

describeIdempotencyKeys('memory', () => createFakeIdempotencyKeys());
