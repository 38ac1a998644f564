import { describeIdentity } from '#shared/identity/contract/identity.ts';
import { describeLoginLimits } from '#shared/identity/contract/login-limits.ts';
import { createFakeIdentity, createFakeLoginAttempts } from '#shared/identity/fake-identity.ts';

describeLoginLimits('memory', createFakeLoginAttempts);
describeIdentity('memory', (clock) => createFakeIdentity({ clock, issuer: 'http://localhost/v1/auth' }));
