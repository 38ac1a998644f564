import type { Db } from '#shared/database/db.ts';
import type { SessionId, TenantId, UserId } from '#shared/ids.ts';
import type { Platform } from '#shared/platform/platform.ts';
import type { Settings } from '#shared/settings/settings.ts';

/** A member's role in a tenant, from the least to the most powerful: viewer, developer, admin, owner. */
export type Role = 'owner' | 'admin' | 'developer' | 'viewer';

/** What an API token allows of what its user may do: `read` only reads, `deploy` reads and deploys, `full` allows all but giving access to others. */
export type TokenScope = 'read' | 'deploy' | 'full';

/** Somebody whose token or key was verified, whatever tenants they belong to. */
export interface Person {
  userId: UserId;
  email: string;
  /** Set when an API token is used; unset for logins and SSH keys. */
  tokenScope?: TokenScope | undefined;
  /** The session of a login. */
  sessionId?: SessionId | undefined;
}

/** A person in the tenant they act for. */
export interface Principal extends Person {
  tenantId: TenantId;
  /** What they may do now: the member's role, or less when an API token is used. */
  role: Role;
}

/** A person with a verified access token, whose tenant and role have not been read yet. */
export interface VerifiedLogin extends Person {
  /** The tenant to act for; left out: the one they have been a member of longest. */
  requestedTenantId?: string | undefined;
}

/**
 * Who calls core. API tokens and SSH keys are principals; a login is resolved by the operation that is called, in the same
 * statement that reads the app it is about.
 */
export type Caller = Principal | VerifiedLogin;

/** What resolving a caller needs. */
export interface CallerContext {
  db: Db;
  settings: Pick<Settings, 'signup'>;
  platform: Pick<Platform, 'capabilities'>;
}

/** A team: the owner of apps. */
export interface Tenant {
  id: TenantId;
  name: string;
}
