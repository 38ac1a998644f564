import { enqueueDeploy } from '#shared/core/apps/app-jobs.ts';
import type { AppRow } from '#shared/core/apps/apps-store.ts';
import type { Context } from '#shared/core/context.ts';
import { insertDeploy } from '#shared/core/releases/deploys-store.ts';
import type { ReleaseKind } from '#shared/core/releases/releases.ts';
import { insertRelease, nextReleaseVersion, type ReleaseRow } from '#shared/core/releases/releases-store.ts';
import { bootSettingsOf } from '#shared/core/releases/settings.ts';
import { readSettings } from '#shared/core/releases/settings-store.ts';
import { readVariables } from '#shared/core/releases/variables.ts';
import type { RefMove } from '#shared/core/repositories/ref-moves.ts';
import type { Db } from '#shared/database/db.ts';
import { type AppId, type BuildId, type DeployId, newUuid, type ReleaseId, type UserId } from '#shared/ids.ts';

/** What a new release is made of. */
export interface NewRelease {
  /** A new id when left out. */
  id?: ReleaseId;
  kind: ReleaseKind;
  /** What it runs: the result of a build, or an earlier release. */
  image: Pick<ReleaseRow, 'image_url' | 'processes' | 'release_command' | 'commit'>;
  description: string;
  createdBy: UserId;
  buildId: BuildId | null;
  /** Refs of the push that it comes from: they move when it is live. */
  refChanges: readonly RefMove[] | null;
}

/**
 * Creates a release with the variables and settings that the app has now, and the deploy that brings it live. It needs a transaction that
 * holds the app's lock, so that variables and version belong together.
 */
export async function createRelease(
  context: Context,
  trx: Db,
  app: AppRow,
  release: NewRelease,
): Promise<{ releaseId: ReleaseId; deployId: DeployId; version: number }> {
  const releaseId = release.id ?? newUuid();
  const deployId = newUuid<DeployId>();
  const version = await nextReleaseVersion(trx, app.id);
  const variables = await readVariables(context, trx, app.id);
  const now = context.clock.now();
  await insertRelease(trx, {
    id: releaseId,
    app_id: app.id,
    version,
    kind: release.kind,
    commit: release.image.commit,
    image_url: release.image.image_url,
    processes: release.image.processes,
    release_command: release.image.release_command,
    config: await context.secrets.seal(JSON.stringify(variables), configPurpose(app.id, version)),
    boot: bootSettingsOf(await readSettings(trx, app)),
    build_id: release.buildId,
    description: release.description,
    created_by: release.createdBy,
    created_at: now,
  });
  await insertDeploy(trx, {
    id: deployId,
    app_id: app.id,
    release_id: releaseId,
    ref_changes: release.refChanges,
    created_at: now,
  });
  await enqueueDeploy(context, trx, app.id, { deployId, hasCommand: release.image.release_command !== null });
  return { releaseId, deployId, version };
}

/** The variables as they were when the release was created. Secret. */
export async function readReleaseConfig(
  { secrets }: Context,
  release: Pick<ReleaseRow, 'app_id' | 'version' | 'config'>,
): Promise<Record<string, string>> {
  return JSON.parse(await secrets.open(release.config, configPurpose(release.app_id, release.version))) as Record<string, string>;
}

function configPurpose(appId: AppId, version: number): string {
  return `release:${appId}:${version}`;
}
