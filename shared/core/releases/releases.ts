/**
 * Releases, deploys, config and processes: the nouns, and what entry points may ask of them.
 * A method that takes a caller throws `not_found` for what the caller's tenant does not own and `forbidden` for what the role
 * does not allow. `app` is an id or a name; ids take precedence.
 */
import type { Caller } from '#shared/core/accounts/principals.ts';
import type { Page, PageQuery } from '#shared/core/page.ts';
import type { DeployId, ReleaseId } from '#shared/ids.ts';
import type { InstanceFacts } from '#shared/platform/workloads.ts';

export type ReleaseKind = 'build' | 'config' | 'addon' | 'rollback';
/** 'pending' too when it was superseded by a newer release before it was rolled out. */
export type ReleaseStatus = 'pending' | 'succeeded' | 'failed';
export type DeployStatus = 'pending' | 'rolling' | 'live' | 'failed' | 'aborted' | 'superseded';

/** A weight that a rollout has reached. */
export interface DeployStep {
  /** Traffic of the new release, in percent. */
  weight: number;
  /** ISO 8601 UTC. */
  at: string;
  detail?: string;
}

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
  listReleases(caller: Caller, app: string, page: PageQuery): Promise<Page<Release>>;
  listDeploys(caller: Caller, app: string, page: PageQuery): Promise<Page<Deploy>>;
  /** `release` is an id, `7` or `v7`. Makes a new release of that one's image, processes and variables, and deploys it. */
  rollBack(caller: Caller, app: string, release: string, id?: ReleaseId): Promise<{ release: Release; deploy: Deploy }>;
}

export interface Config {
  readConfig(caller: Caller, app: string): Promise<Record<string, string>>;
  /** Null unsets. A change makes a release of the running image, and deploys it. Answers all variables after it. */
  changeConfig(caller: Caller, app: string, changes: Record<string, string | null>): Promise<Record<string, string>>;
}

export interface ProcessType {
  type: string;
  command: string;
  quantity: number;
  instances: readonly InstanceFacts[];
}

export interface Processes {
  /** Of the current release; empty before the first. */
  listProcesses(caller: Caller, app: string): Promise<readonly ProcessType[]>;
  /** `validation_failed` for a type the release does not have or a quantity past the limit. */
  scaleProcess(caller: Caller, app: string, type: string, quantity: number): Promise<ProcessType>;
  /** Accepted, not finished: instances are replaced one by one. `conflict` when nothing was released yet. */
  restart(caller: Caller, app: string): Promise<{ restartedAt: Date; processes: readonly string[] }>;
}
