import { describeEventLimits } from '#shared/rate-limits/contract/event-limits.ts';
import { createFakeEventLimits } from '#shared/rate-limits/fake-event-limits.ts';

describeEventLimits('memory', () => createFakeEventLimits());
