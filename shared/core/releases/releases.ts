/**
 * Releases, deploys, config and processes: their types, and the interfaces that entry points use.
 * A method that takes a caller throws `not_found` for what the caller's tenant does not own and `forbidden` for what the role
 * does not allow. `app` is an id or a name; ids take precedence.
 */
import type { Caller } from '#shared/core/accounts/principals.ts';
import type { Page, PageQuery } from '#shared/core/page.ts';
import type { DeployId, ReleaseId } from '#shared/ids.ts';
import type { InstanceFacts } from '#shared/platform/workloads.ts';

/** What a release was created by: a build, a change of variables or of add-ons, or a rollback. */
export const releaseKinds = ['build', 'config', 'addon', 'rollback'] as const;
export type ReleaseKind = (typeof releaseKinds)[number];
/** 'pending' too when it was superseded by a newer release before it was rolled out. */
export type ReleaseStatus = 'pending' | 'succeeded' | 'failed';
/**
 * 'superseded': a newer release has taken its place, or was waiting before the rollout began, or the app was deleted. It is stored
 * for the latter two only: the deploy of a release that is not current any more is listed so.
 */
export type DeployStatus = 'pending' | 'rolling' | 'live' | 'failed' | 'aborted' | 'superseded';

/**
 * Why a deploy did not end well. 'boot': an instance did not start, or crashed. 'canary': the new release did worse than the
 * old one under traffic. 'moved': a ref of its push has moved to where it would lose commits. 'platform': no fault of the app.
 */
export type DeployFailure = 'release_command' | 'boot' | 'canary' | 'moved' | 'platform';

/** A weight that a rollout has reached. */
export interface DeployStep {
  /** Traffic of the new release, in percent. */
  weight: number;
  /** ISO 8601 UTC. */
  at: string;
  detail?: string;
}

/** An image with its processes and variables, in a version of its own. */
export interface Release {
  id: ReleaseId;
  version: number;
  status: ReleaseStatus;
  kind: ReleaseKind;
  commit: string | null;
  /** First line of the commit's message, and its author as `Ada <ada@example.com>`; null when they were not read. */
  commitTitle: string | null;
  commitAuthor: string | null;
  imageUrl: string;
  description: string;
  current: boolean;
  createdAt: Date;
  /** Email; the user id once the user has left the team. */
  createdBy: string;
}

/** How a release was brought live, or why it was not. */
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

/** Releases and how they are brought live. */
export interface Releases {
  listReleases(caller: Caller, app: string, page: PageQuery): Promise<Page<Release>>;
  listDeploys(caller: Caller, app: string, page: PageQuery): Promise<Page<Deploy>>;
  /** `release` is an id, `7` or `v7`. Creates and deploys a new release with that one's image, processes and variables. */
  rollBack(caller: Caller, app: string, release: string, id?: ReleaseId): Promise<{ release: Release; deploy: Deploy }>;
}

/** An app's own variables. */
export interface Config {
  /** @param withAddons also those that add-ons give the app, which win over its own */
  readConfig(caller: Caller, app: string, withAddons?: boolean): Promise<Record<string, string>>;
  /** Null unsets a variable. A change creates and deploys a release of the running image. @returns all variables after it */
  changeConfig(caller: Caller, app: string, changes: Record<string, string | null>): Promise<Record<string, string>>;
}

/** A process type of the current release, and what runs of it. */
export interface ProcessType {
  type: string;
  command: string;
  quantity: number;
  instances: readonly InstanceFacts[];
}

/** What runs of an app. */
export interface Processes {
  /** Of the current release; empty before the first. */
  listProcesses(caller: Caller, app: string): Promise<readonly ProcessType[]>;
  /** `validation_failed` for a type the release does not have or a quantity past the limit. */
  scaleProcess(caller: Caller, app: string, type: string, quantity: number): Promise<ProcessType>;
  /**
   * Begins to replace the instances one by one. An app whose releases all failed releases the newest once more. `conflict` when it
   * has no release yet.
   */
  restart(caller: Caller, app: string): Promise<{ restartedAt: Date; processes: readonly string[] }>;
}
