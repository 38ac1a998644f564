import { describeIdempotencyKeys } from '#shared/idempotency/contract/idempotency.ts';
import { createMemoryIdempotencyKeys } from '#shared/idempotency/memory-idempotency.ts';

describeIdempotencyKeys('memory', () => createMemoryIdempotencyKeys());
