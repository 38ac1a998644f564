import type { Principal } from '#shared/core/accounts/principals.ts';

export interface HostStart {
  /** A migrated database. */
  databaseUrl: string;
  /** Holds `git/` and the socket `git.sock`. */
  directory: string;
  /** 32 bytes in base64: what seals secrets, the same at every start. */
  secretKey: string;
  /** In whose name everything is done; undefined until somebody has signed up. */
  owner: Principal | undefined;
}

export type HostCall =
  | { kind: 'sign up' }
  | { kind: 'create app'; gitUrl?: string }
  | { kind: 'start build'; app: string }
  | { kind: 'change config'; app: string; word: string }
  | { kind: 'create addon' | 'rotate password' | 'delete addon'; app: string }
  | { kind: 'deliver'; headers: Record<string, string>; body: string }
  | { kind: 'facts' };

/** What the ground shows. */
export interface HostFacts {
  /** Leftovers of pushes that the start has swept. */
  swept: number;
  /** Of an app's instances, by app. */
  versions: Record<string, number[]>;
  /** Whether the store has the password that the row says, by app; an app without either is not listed. */
  addons: Record<string, boolean>;
}
