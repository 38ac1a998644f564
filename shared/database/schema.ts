import type { ColumnType, Generated, JSONColumnType } from 'kysely';
import type { CreatedAt } from '#shared/database/db.ts';
import type { AppId, BuildId, DeployId, ReleaseId, UserId } from '#shared/ids.ts';
import type { AddonType } from '#shared/platform/addons.ts';

export type { Db, Tables as Database } from '#shared/database/db.ts';

/** Tables that no store has claimed yet: they move to the stores one by one, and this file goes. */
declare module '#shared/database/db.ts' {
  interface Tables {
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
  }
}

export type AddonPlan = 'free' | 'standard' | 'pro';
export type AddonStatus = 'creating' | 'Ready' | 'Creating' | 'Failed';
export type ReleaseKind = 'build' | 'config' | 'addon' | 'rollback';
export type ReleaseStatus = 'pending' | 'succeeded' | 'failed';
export type DeployStatus = 'pending' | 'rolling' | 'live' | 'failed' | 'aborted' | 'superseded';

export interface DeployStep {
  weight: number;
  /** ISO 8601 UTC. */
  at: string;
  detail?: string;
}
