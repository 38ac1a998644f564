import type { RepositoryId } from '#shared/ids.ts';
import type { PlatformFacts } from '#test/support/crash/control-plane-calls.ts';
import { type ControlPlaneProcess, OutcomeUnknown } from '#test/support/crash/control-plane-process.ts';
import type { Random } from '#test/support/random.ts';
import type { TestApp, TestEnvironment } from './test-environment.ts';

export interface OperationContext {
  readonly environment: TestEnvironment;
  readonly controlPlane: ControlPlaneProcess;
  readonly app: TestApp;
  readonly random: Random;
  /**
   * The control plane survives the fault: it may answer that the outcome is unknown. Otherwise it dies, and no answer that it gives
   * may be a refusal.
   */
  readonly hostSurvives: boolean;
}

/** Called once nothing is under way any more. @returns what is wrong */
export type Check = (facts: PlatformFacts) => Promise<readonly string[]>;

/** One change to an app, during which a fault is injected. */
export interface Operation {
  /** How many requests it makes. */
  readonly requests: number;
  /** @returns how many of the requests were not answered */
  start(): Promise<number>;
  readonly check: Check;
}

/** Reads what the operation needs to know while nothing is wrong yet. */
export type PrepareOperation = (context: OperationContext) => Promise<Operation>;

/**
 * Waits for the answer to a call.
 * @returns undefined when the outcome is unknown
 * @throws Error for a refusal: no operation here may be refused
 */
export async function answerTo<Value>(call: Promise<Value>): Promise<Value | undefined> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof OutcomeUnknown) return undefined;
    throw error;
  }
}

/** The builds of a commit with their deploys, oldest first. */
export function readBuilds({ environment, app }: OperationContext, commit: string) {
  return environment.db
    .selectFrom('builds')
    .leftJoin('deploys', 'deploys.release_id', 'builds.release_id')
    .selectAll('builds')
    .select(['deploys.status as deploy_status', 'deploys.error as deploy_error'])
    .where('builds.app_id', '=', app.id)
    .where('builds.commit', '=', commit)
    .orderBy('builds.created_at')
    .execute();
}

/** @returns object ids by name of the ref */
export async function readRefs({ environment, app }: OperationContext): Promise<ReadonlyMap<string, string>> {
  const rows = await environment.db
    .selectFrom('git_refs')
    .select(['name', 'oid'])
    .where('repository_id', '=', app.id as string as RepositoryId)
    .execute();
  return new Map(rows.map(({ name, oid }) => [name, oid]));
}
