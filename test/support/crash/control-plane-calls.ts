import type { Principal } from '#shared/core/accounts/principals.ts';

export interface ControlPlaneStart {
  /** A migrated database. */
  databaseUrl: string;
  /** Holds `git/` and the socket `git.sock`. */
  directory: string;
  /** The key that seals secrets, 32 bytes in base64; the same at every start. */
  secretKey: string;
  /** The caller in whose name everything is done; undefined until somebody has signed up. */
  owner: Principal | undefined;
}

export type ControlPlaneCall =
  | { kind: 'sign up' }
  | { kind: 'create app'; gitUrl?: string }
  | { kind: 'start build'; app: string }
  | { kind: 'change config'; app: string; word: string }
  | { kind: 'create addon' | 'rotate password' | 'delete addon'; app: string }
  | { kind: 'deliver'; headers: Record<string, string>; body: string }
  | { kind: 'facts' };

/** What the fake platform and the git storage report. */
export interface PlatformFacts {
  /** Abandoned pushes that the start has removed. */
  swept: number;
  /** Release versions of an app's instances, by app. */
  versions: Record<string, number[]>;
  /** By app: whether the store has the password of its database row. An app without a store and without a row is not listed. */
  addons: Record<string, boolean>;
}
