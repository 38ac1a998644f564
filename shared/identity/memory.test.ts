import { describeIdentity } from '#shared/identity/contract/identity.ts';
import { describeLoginLimits } from '#shared/identity/contract/login-limits.ts';
import { createMemoryIdentity, createMemoryLoginAttempts } from '#shared/identity/memory.ts';

describeLoginLimits('memory', createMemoryLoginAttempts);
describeIdentity('memory', (clock) => createMemoryIdentity({ clock, issuer: 'http://localhost/v1/auth' }));
