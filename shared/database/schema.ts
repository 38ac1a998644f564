import type { ColumnType, Generated, JSONColumnType } from 'kysely';
import type { CreatedAt } from '#shared/database/db.ts';
import type { AppId, BuildId, DeployId, ObjectId, ReleaseId, RepositoryId, UserId } from '#shared/ids.ts';
import type { AddonType } from '#shared/platform/addons.ts';

export type { Db, Tables as Database } from '#shared/database/db.ts';

/** Tables that no store has claimed yet: they move to the stores one by one, and this file goes. */
declare module '#shared/database/db.ts' {
  interface Tables {
    /** Embedded identity. `email_key` is the lower-cased address and unique. */
    users: { id: UserId; email: string; email_key: string; password_hash: string; created_at: CreatedAt };
    /** Embedded identity. `private_key` is sealed. Retired keys verify until `retired_at` + the longest token life. */
    signing_keys: {
      id: string;
      public_jwk: JSONColumnType<Record<string, unknown>>;
      private_key: string;
      created_at: CreatedAt;
      signs_from: Date;
      retired_at: Date | null;
    };
    /** Embedded identity. `account` is the SHA-256 of an email, known or not; `source` is '' for strangers to it. */
    login_failures: { id: Generated<string>; account: string; source: string; failed_at: Date };
    /** Embedded identity. Where somebody has logged in from. */
    login_sources: { account: string; source: string; logged_in_at: Date };
    /** Embedded identity. Only the SHA-256 of a token is kept. */
    refresh_tokens: {
      token_hash: string;
      family_id: string;
      user_id: UserId;
      created_at: CreatedAt;
      expires_at: Date;
      used_at: Date | null;
      revoked_at: Date | null;
    };

    /** `value` is sealed. */
    config_vars: { app_id: AppId; name: string; value: string };
    /** Wanted instances of a process type; a type without a row gets 1 for web and 0 for the others. */
    formations: { app_id: AppId; type: string; quantity: number };
    /** `password` is what the servers are to take, `credentials` the JSON of how the app gets in since they did; both sealed. */
    app_addons: {
      app_id: AppId;
      addon_type: AddonType;
      plan: AddonPlan;
      /** 'creating' until the servers were told; then as it was seen last. */
      status: AddonStatus;
      password: string;
      credentials: string | null;
      /** Counted up by each change that is asked for: what an older job found out matches no row. */
      generation: Generated<number>;
      changed_by: UserId;
      created_at: CreatedAt;
      updated_at: ColumnType<Date, Date | undefined, Date>;
      /** Set while it is being removed; then the row goes. */
      removed_at: Date | null;
    };
    /** How many releases an app ever had: versions are handed out by counting up under this row's lock. */
    release_counters: { app_id: AppId; last_version: number };

    releases: {
      id: ReleaseId;
      app_id: AppId;
      version: number;
      status: ReleaseStatus;
      kind: ReleaseKind;
      commit: string | null;
      image_url: string;
      processes: JSONColumnType<Record<string, string>>;
      release_command: string | null;
      /** Sealed JSON of the variables at the time: a rollback restores them too. */
      config: string;
      build_id: BuildId | null;
      description: string;
      created_by: UserId;
      created_at: CreatedAt;
    };
    deploys: {
      id: DeployId;
      app_id: AppId;
      release_id: ReleaseId;
      status: DeployStatus;
      weight: Generated<number>;
      steps: JSONColumnType<DeployStep[]>;
      error: string | null;
      attempt: Generated<number>;
      created_at: CreatedAt;
      finished_at: Date | null;
    };

    git_refs: { repository_id: RepositoryId; name: string; oid: ObjectId; updated_at: ColumnType<Date, Date | undefined, Date> };
    /** `pack_id` is the pack's trailing checksum. Without `retired_at` it is part of the repository; with it another holds its objects. */
    git_packs: {
      repository_id: RepositoryId;
      pack_id: string;
      object_count: number;
      bytes: number;
      created_at: CreatedAt;
      /** Nothing needed its objects when they were last looked at. */
      unreachable_since: ColumnType<Date | null, Date | null | undefined, Date | null>;
      retired_at: ColumnType<Date | null, Date | null | undefined, Date | null>;
    };

    /**
     * What an app's process type used and answered from `ts` on for `step_seconds`: sums, but for the memory, of which it
     * is the most. `seconds` is the time that was observed. Requests are those of the type that gets them.
     */
    app_samples: {
      app_id: AppId;
      step_seconds: number;
      ts: Date;
      process_type: string;
      seconds: number;
      cpu_seconds: number;
      memory_bytes: number;
      requests: number;
      errors: number;
      milliseconds: number;
      /** Requests by bucket of shared/platform/latencies.ts, without the empty ones at the end. */
      latencies: number[];
    };
    /** Counters as they were last read, by instance and by release version: the next sample is the difference. */
    app_readings: {
      app_id: AppId;
      read_at: Date;
      cpu: JSONColumnType<Record<string, number>>;
      traffic: JSONColumnType<Record<string, TrafficReading>>;
    };

    /** One row a worker process; see shared/jobs/graphile. */
    worker_leases: { worker_id: string; heartbeat_at: ColumnType<Date, Date | undefined, Date> };
    /** A sliding log of hits: one row a limited key, newest hits in milliseconds since the epoch. */
    rate_limits: { key: string; hits: number[]; updated_at: ColumnType<Date, Date | undefined, Date> };
    /** First answers of POSTs with an Idempotency-Key. `response` is sealed. */
    idempotency_keys: {
      subject: string;
      key: string;
      request_hash: string;
      /** Of what the request makes. */
      resource_id: Generated<string>;
      status: number | null;
      response: string | null;
      created_at: ColumnType<Date, Date | undefined, Date>;
    };
  }
}

export type AddonPlan = 'free' | 'standard' | 'pro';
export type AddonStatus = 'creating' | 'Ready' | 'Creating' | 'Failed';
export type ReleaseKind = 'build' | 'config' | 'addon' | 'rollback';
export type ReleaseStatus = 'pending' | 'succeeded' | 'failed';
export type DeployStatus = 'pending' | 'rolling' | 'live' | 'failed' | 'aborted' | 'superseded';

export interface TrafficReading {
  requests: number;
  errors: number;
  milliseconds: number;
  /** By bucket of shared/platform/latencies.ts; what was read before they were counted has none. */
  latencies?: readonly number[];
}

export interface DeployStep {
  weight: number;
  /** ISO 8601 UTC. */
  at: string;
  detail?: string;
}
