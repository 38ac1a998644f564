/**
 * What the doors may ask of the house: one interface a noun. A door's handler takes the one or two it needs.
 * Every method that takes a principal answers `not_found` for what that principal's tenant does not own, `forbidden`
 * for what the role may not do. `app` is an id or a name, ids first. An `id` for what is made finds what was made by it.
 */

import type { AppAddons } from '#shared/core/app-addons.ts';
import type { GitSources, Webhooks } from '#shared/core/git-host-services.ts';
import type { Page, PageQuery } from '#shared/core/page.ts';
import type { Person, Principal, Tenant } from '#shared/core/principals.ts';
import type {
  BuildStatus,
  DeployStatus,
  DeployStep,
  ReleaseKind,
  ReleaseStatus,
  Role,
  TokenScope,
} from '#shared/database/schema.ts';
import type { ApplyPush, GitRepository } from '#shared/git/repository.ts';
import type { TokenSet } from '#shared/identity/identity.ts';
import type {
  ApiTokenId,
  AppId,
  BuildId,
  DeployId,
  InvitationId,
  MembershipId,
  ReleaseId,
  SshKeyId,
  TenantId,
  UserId,
} from '#shared/ids.ts';
import type { AppLogEntry, AppLogQuery, CacheState, InstanceFacts } from '#shared/platform/platform.ts';

export interface Services {
  accounts: Accounts;
  sshKeys: SshKeys;
  apiTokens: ApiTokens;
  team: Team;
  apps: Apps;
  builds: Builds;
  buildCache: BuildCacheService;
  releases: Releases;
  config: Config;
  processes: Processes;
  addons: AppAddons;
  domains: Domains;
  logs: Logs;
  metrics: AppMetrics;
  pushes: Pushes;
  gitSources: GitSources;
  webhooks: Webhooks;
}

// ------------------------------------------------------------------- accounts

export interface Accounts {
  /** A user, a tenant of their own (or that of the invitation's token), and tokens. `forbidden` when closed and not invited. */
  signUp(request: { email: string; password: string; tenantName?: string; source?: string; invitation?: string }): Promise<{
    user: { id: UserId; email: string };
    tenant: Tenant;
    tokens: TokenSet;
  }>;
  /**
   * The principal behind a verified subject; a first visit from an outside issuer makes the tenant. Without `tenantId` in
   * the tenant they have been in longest, else in that one: `forbidden` when they are no member, or there is none. With
   * `app` what is there under that id or name is read along, see `Principal.namedApp`.
   */
  resolvePrincipal(subject: { id: UserId; email: string }, tenantId?: string, app?: string): Promise<Principal>;
  readTenant(principal: Principal): Promise<Tenant>;
}

// ------------------------------------------------------------------- ssh keys

export interface SshKey {
  id: SshKeyId;
  name: string;
  /** `type base64`, without the comment. */
  publicKey: string;
  /** `SHA256:<base64>` as `ssh-keygen -lf` prints it. */
  fingerprint: string;
  createdAt: Date;
  lastUsedAt: Date | null;
}

export interface SshKeys {
  /** `validation_failed` says what is wrong with the key; `conflict` when anybody has registered it. */
  addKey(principal: Principal, request: { id?: SshKeyId; name: string; publicKey: string }): Promise<SshKey>;
  listKeys(principal: Principal, page: PageQuery): Promise<Page<SshKey>>;
  /** `key` is an id or a fingerprint. */
  deleteKey(principal: Principal, key: string): Promise<void>;
  /** The owner of a raw public key blob (RFC 4253 §6.6), by its SHA-256; undefined when nobody's. Call after the signature verified. */
  resolveKey(blob: Uint8Array): Promise<(Principal & { keyId: SshKeyId; fingerprint: string }) | undefined>;
}

// ----------------------------------------------------------------- api tokens

export interface ApiToken {
  id: ApiTokenId;
  name: string;
  scope: TokenScope;
  createdAt: Date;
  /** Null: never. */
  expiresAt: Date | null;
  /** To the minute. */
  lastUsedAt: Date | null;
}

/** Of the principal, in the tenant they act for. Ends with the membership. */
export interface ApiTokens {
  /** `token` is shown this once. `forbidden` to API tokens, here and in `revokeToken`. */
  createToken(
    principal: Principal,
    request: { name: string; scope: TokenScope; expiresInDays?: number },
  ): Promise<ApiToken & { token: string }>;
  listTokens(principal: Principal, page: PageQuery): Promise<Page<ApiToken>>;
  revokeToken(principal: Principal, id: string): Promise<void>;
  /** Whom a token speaks for, in its role narrowed by its scope; undefined when unknown, revoked or expired. */
  resolveToken(token: string): Promise<Principal | undefined>;
}

// ----------------------------------------------------------------------- team

export interface Member {
  id: MembershipId;
  userId: UserId;
  email: string;
  role: Role;
  createdAt: Date;
}

export interface Invitation {
  id: InvitationId;
  email: string;
  role: Role;
  createdAt: Date;
  expiresAt: Date;
}

/**
 * Who belongs to the principal's tenant. Admins and owners change it, nobody beyond their own role, and an owner
 * always remains (`conflict`). Changes are `forbidden` to API tokens.
 */
export interface Team {
  /** Every tenant of the principal, newest membership first. */
  listTenants(principal: Principal, page: PageQuery): Promise<Page<Tenant & { role: Role }>>;
  listMembers(principal: Principal, page: PageQuery): Promise<Page<Member>>;
  changeRole(principal: Principal, member: string, role: Role): Promise<Member>;
  /** Anybody may remove themselves. Their keys and tokens stop working in this tenant at once. */
  removeMember(principal: Principal, member: string): Promise<void>;
  /** `token` is shown this once; an earlier invitation of the same address ends. */
  invite(principal: Principal, request: { email: string; role: Role }): Promise<Invitation & { token: string }>;
  listInvitations(principal: Principal, page: PageQuery): Promise<Page<Invitation>>;
  withdrawInvitation(principal: Principal, invitation: string): Promise<void>;
  /** `not_found` when unknown, used or expired; `forbidden` to who has another email address. */
  acceptInvitation(person: Person, token: string): Promise<Tenant & { role: Role }>;
}

// ----------------------------------------------------------------------- apps

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

export interface Apps {
  /** A generated name when none is given. `conflict` when the name is taken. */
  createApp(principal: Principal, request: { id?: AppId; name?: string; gitUrl?: string | null; branch?: string }): Promise<App>;
  /** Active ones, newest first; with `deleted` the restorable ones instead. */
  listApps(principal: Principal, page: PageQuery & { deleted?: boolean }): Promise<Page<App>>;
  /** Deleted ones too, until they are purged. */
  readApp(principal: Principal, app: string): Promise<App>;
  /** Stops it now, keeps everything else for 30 days. Deleting a deleted app is `not_found`. */
  deleteApp(principal: Principal, app: string): Promise<App>;
  /** `conflict` when it is not deleted. */
  restoreApp(principal: Principal, app: string): Promise<App>;
  setGitSource(principal: Principal, app: string, source: { url: string | null; branch?: string }): Promise<App>;
}

// --------------------------------------------------------------------- builds

export interface Build {
  id: BuildId;
  appId: AppId;
  status: BuildStatus;
  cacheState: CacheState;
  pipeline: string;
  /** Null until it is known, and for an archive. */
  commit: string | null;
  branch: string | null;
  /** The archive it is built of: its address without the query, and its SHA-256 once that is known. Null for a commit. */
  sourceUrl: string | null;
  sourceSha256: string | null;
  imageUrl: string | null;
  error: string | null;
  releaseId: ReleaseId | null;
  createdAt: Date;
  startedAt: Date | null;
  finishedAt: Date | null;
}

export interface BuildLogLine {
  seq: number;
  ts: Date;
  line: string;
}

export interface Builds {
  /**
   * Of the app's repository; default: its branch. `conflict` when there is nothing pushed yet. Or of the tar.gz at
   * `sourceUrl`, fetched when it runs.
   */
  startBuild(
    principal: Principal,
    app: string,
    request: { id?: BuildId; branch?: string; commit?: string; sourceUrl?: string; sourceSha256?: string },
  ): Promise<Build>;
  listBuilds(principal: Principal, app: string, page: PageQuery): Promise<Page<Build>>;
  /** `build` is an id, or 'latest'. */
  readBuild(principal: Principal, app: string, build: string): Promise<Build>;
  readBuildLog(
    principal: Principal,
    app: string,
    build: string,
    query: { afterSeq?: number; limit?: number },
  ): Promise<readonly BuildLogLine[]>;
  /** All lines from `afterSeq` on, until the build and the deploy it leads to are over, or the signal aborts. */
  followBuildLog(
    principal: Principal,
    app: string,
    build: string,
    query: { afterSeq?: number },
    signal: AbortSignal,
  ): Promise<AsyncIterable<BuildLogLine>>;
  /** `conflict` when it is over. A queued one ends at once, a running one within seconds. */
  cancelBuild(principal: Principal, app: string, build: string): Promise<Build>;
}

export interface BuildCacheService {
  /** A pointer; it does not say whether the volume exists. */
  readCache(principal: Principal, app: string): Promise<{ appId: AppId; pvcName: string; namespace: string }>;
  flushCache(principal: Principal, app: string): Promise<{ appId: AppId; flushed: boolean; message: string }>;
}

// ------------------------------------------------------------------- releases

export interface Release {
  id: ReleaseId;
  version: number;
  status: ReleaseStatus;
  kind: ReleaseKind;
  commit: string | null;
  imageUrl: string;
  description: string;
  current: boolean;
  createdAt: Date;
  /** Email, or the user id when the user is gone. */
  createdBy: string;
}

export interface Deploy {
  id: DeployId;
  releaseId: ReleaseId;
  version: number;
  status: DeployStatus;
  weight: number;
  steps: readonly DeployStep[];
  error: string | null;
  createdAt: Date;
  finishedAt: Date | null;
}

export interface Releases {
  listReleases(principal: Principal, app: string, page: PageQuery): Promise<Page<Release>>;
  listDeploys(principal: Principal, app: string, page: PageQuery): Promise<Page<Deploy>>;
  /** `release` is an id, `7` or `v7`. Makes a new release of that one's image, processes and variables, and deploys it. */
  rollBack(principal: Principal, app: string, release: string, id?: ReleaseId): Promise<{ release: Release; deploy: Deploy }>;
}

// -------------------------------------------------------- config and processes

export interface Config {
  readConfig(principal: Principal, app: string): Promise<Record<string, string>>;
  /** Null unsets. A change makes a release of the running image, and deploys it. Answers all variables after it. */
  changeConfig(principal: Principal, app: string, changes: Record<string, string | null>): Promise<Record<string, string>>;
}

export interface ProcessType {
  type: string;
  command: string;
  quantity: number;
  instances: readonly InstanceFacts[];
}

export interface Processes {
  /** Of the current release; empty before the first. */
  listProcesses(principal: Principal, app: string): Promise<readonly ProcessType[]>;
  /** `validation_failed` for a type the release does not have or a quantity past the limit. */
  scaleProcess(principal: Principal, app: string, type: string, quantity: number): Promise<ProcessType>;
  /** Accepted, not finished: instances are replaced one by one. `conflict` when nothing was released yet. */
  restart(principal: Principal, app: string): Promise<{ restartedAt: Date; processes: readonly string[] }>;
}

// -------------------------------------------------------------------- domains

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
  listDomains(principal: Principal, app: string): Promise<readonly Domain[]>;
  /**
   * Looks for the proof at once; again for a host that is there already (`added` is false). `conflict` when the host is
   * on another app of the tenant, or on anybody's where no proof is asked for.
   */
  addDomain(principal: Principal, app: string, host: string): Promise<{ domain: Domain; added: boolean }>;
  removeDomain(principal: Principal, app: string, host: string): Promise<void>;
}

export interface Logs {
  readLogs(principal: Principal, app: string, query: AppLogQuery): Promise<readonly AppLogEntry[]>;
  followLogs(
    principal: Principal,
    app: string,
    query: AppLogQuery,
    signal: AbortSignal,
    after?: string,
  ): Promise<AsyncIterable<AppLogEntry>>;
}

// -------------------------------------------------------------------- metrics

export type MetricKind = 'cpu' | 'memory' | 'requests' | 'errors' | 'latency';

/** The time at which its step begins, and the value over that step. */
export type MetricPoint = readonly [ts: Date, value: number];

export interface MetricSeries {
  name: MetricKind;
  /** cores; bytes (the most of the step, all instances together); requests (in the step); milliseconds (the mean). */
  unit: string;
  labels: Readonly<Record<string, string>>;
  stepSeconds: number;
  /** In the order of time. Steps in which nothing ran, or of which there is nothing to say, are left out. */
  points: readonly MetricPoint[];
}

export interface AppMetrics {
  /** One series a process type, of one kind or of all; `rangeSeconds` up to now, a minute to 30 days. */
  readMetrics(
    principal: Principal,
    app: string,
    query: { kind?: MetricKind; rangeSeconds: number },
  ): Promise<readonly MetricSeries[]>;
}

// --------------------------------------------------------------------- pushes

/** A repository the principal may use, opened by `git-upload-pack` or `git-receive-pack`. */
export interface OpenedRepository extends GitRepository {
  appId: AppId;
  appName: string;
  /** What HEAD points to: the branch that is deployed, as 'refs/heads/main'. */
  headRef: string;
  /** What a push to it means. */
  applyPush: ApplyPush;
}

export interface Pushes {
  /** `not_found` alike for "no such app" and "not yours"; `forbidden` for a viewer who pushes. */
  openRepository(principal: Principal, appName: string, access: 'read' | 'write'): Promise<OpenedRepository>;
}
