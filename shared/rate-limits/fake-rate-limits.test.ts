import { describeRateLimits } from '#shared/rate-limits/contract/rate-limits.ts';
import { createFakeRateLimits } from '#shared/rate-limits/fake-rate-limits.ts';

describeRateLimits('memory', () => createFakeRateLimits());
