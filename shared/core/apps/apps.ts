/**
 * Apps and their domains: the nouns, and what entry points may ask of them.
 * A method that takes a caller throws `not_found` for what the caller's tenant does not own and `forbidden` for what the role
 * does not allow. `app` is an id or a name; ids take precedence.
 */
import type { Caller } from '#shared/core/accounts/principals.ts';
import type { Page, PageQuery } from '#shared/core/page.ts';
import type { AppId, ReleaseId, TenantId } from '#shared/ids.ts';

export interface App {
  id: AppId;
  name: string;
  tenantId: TenantId;
  gitUrl: string | null;
  /** `ssh://git@host:port/<name>.git` */
  pushUrl: string;
  branch: string;
  /** `https://<name>.<apps domain>`, with the port when it is not 443. */
  subdomain: string;
  /** Where to open it: like `subdomain`, but http when that is how this platform is reached. */
  webUrl: string;
  status: 'active' | 'deleted';
  currentRelease: { id: ReleaseId; version: number } | null;
  /** For a preview: whose, and of which branch. */
  preview: { parentAppId: AppId; branch: string } | null;
  createdAt: Date;
  updatedAt: Date;
  deletedAt: Date | null;
  /** Null while active. */
  restorableUntil: Date | null;
}

/** What creating an app asks for. */
export interface NewApp {
  /** Passing the id of an app that the tenant has returns that app. */
  id?: AppId | undefined;
  /** Left out: a generated one. */
  name?: string | undefined;
  /** Left out: the app's own repository on this platform. */
  gitUrl?: string | null | undefined;
  /** Left out: `main`. */
  branch?: string | undefined;
}

export interface Apps {
  /** `conflict` when the name is taken. */
  createApp(caller: Caller, request: NewApp): Promise<App>;
  /** Active ones, newest first; with `deleted` the restorable ones instead. */
  listApps(caller: Caller, page: PageQuery & { deleted?: boolean | undefined }): Promise<Page<App>>;
  /** Deleted ones too, until they are purged. */
  readApp(caller: Caller, app: string): Promise<App>;
}

/** Separate from `Apps`, since it also affects builds and add-ons. */
export interface AppDeletion {
  /**
   * Stops it now, keeps everything else for 30 days. Deleting a deleted app is `not_found`.
   * With `purge` all of it is removed as soon as nothing is under way, also of a deleted app, and its name is free again.
   */
  deleteApp(caller: Caller, app: string, options?: { purge?: boolean }): Promise<App>;
  /** `conflict` when it is not deleted, and for a preview whose parent app is deleted. */
  restoreApp(caller: Caller, app: string): Promise<App>;
}

/** `pending`: control of the host is not proven yet. `removing`: the app's until no route leads to it. */
export type DomainStatus = 'pending' | 'active' | 'removing';

export interface Domain {
  /** In ASCII, lower case. */
  host: string;
  /** 'active': leads to the app as soon as it has a release. 'pending': control of it is not proven yet, or it is on its way here. */
  status: 'pending' | 'active';
  /** The TXT record that proves control; null when there is nothing left to prove. */
  proof: { name: string; value: string } | null;
  certificate: { status: 'pending' | 'issued'; expiresAt: Date | null };
  createdAt: Date;
}

export interface Domains {
  /** In the order in which they were added. */
  listDomains(caller: Caller, app: string): Promise<readonly Domain[]>;
  /**
   * Looks for the proof at once; again for a host that is there already (`added` is false). `conflict` when the host is
   * on another app of the tenant, or on anybody's where no proof is asked for.
   */
  addDomain(caller: Caller, app: string, host: string): Promise<{ domain: Domain; added: boolean }>;
  removeDomain(caller: Caller, app: string, host: string): Promise<void>;
}
