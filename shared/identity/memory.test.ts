import { describeIdentity } from '#shared/identity/contract/identity.ts';
import { createMemoryIdentity } from '#shared/identity/memory.ts';

describeIdentity('memory', (clock) => createMemoryIdentity({ clock, issuer: 'http://localhost/v1/auth' }));
