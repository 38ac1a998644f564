import { describeRateLimits } from '#shared/rate-limits/contract/rate-limits.ts';
import { createMemoryRateLimits } from '#shared/rate-limits/memory-rate-limits.ts';

describeRateLimits('memory', () => createMemoryRateLimits());
