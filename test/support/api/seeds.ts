import type { Role } from '#shared/core/accounts/principals.ts';
import { readAppById, setCurrentRelease } from '#shared/core/apps/apps-store.ts';
import { createBuild, withCaches } from '#shared/core/builds/build-creation.ts';
import type { BuildRow } from '#shared/core/builds/builds-store.ts';
import { createRelease } from '#shared/core/releases/release-creation.ts';
import { readBaseRelease } from '#shared/core/releases/releases-store.ts';
import { insertRun } from '#shared/core/releases/runs-store.ts';
import { workloadSpec } from '#shared/core/releases/workload-spec.ts';
import { createBuildLogWriter } from '#shared/core/telemetry/build-log-writer.ts';
import { type AppId, newUuid, type ObjectId, type ReleaseId, type RunId, type TenantId, type UserId } from '#shared/ids.ts';
import type { TestApi, TestUser } from '#test/support/api/test-api.ts';

const commit = '5478677c3a5a1f2c8f1c1fbb6b9d7c7a6e1d2f30' as ObjectId;

/** A queued build, made as a push makes it. */
export async function seedBuild({ context }: TestApi, user: TestUser, appId: string): Promise<BuildRow> {
  const app = await requireRow(context, appId);
  const build = { commit, branch: 'main', refChanges: null, createdBy: user.id as UserId };
  return withCaches(context, [app.id], (caches) =>
    context.db.transaction().execute((trx) => createBuild(context, trx, app, { ...build, caches })),
  );
}

export async function seedBuildLog({ context }: TestApi, build: BuildRow, lines: readonly string[]): Promise<void> {
  const writer = createBuildLogWriter(context, { buildId: build.id, redact: (text) => text });
  for (const line of lines) writer.line(line);
  await writer.flush();
}

/** A release that went live, as a finished build makes it. */
export async function seedRelease(
  { context }: TestApi,
  user: TestUser,
  appId: string,
  processes = { web: 'node server.js' },
): Promise<ReleaseId> {
  const app = await requireRow(context, appId);
  const image = { image_url: `slug://${appId}@sha256:${'a'.repeat(64)}`, processes, release_command: null, commit };
  const { releaseId, deployId } = await context.db.transaction().execute((trx) =>
    createRelease(context, trx, app, {
      kind: 'build',
      image,
      description: 'Deploy 5478677',
      createdBy: user.id as UserId,
      buildId: null,
      refChanges: null,
    }),
  );
  await context.db.updateTable('releases').set({ status: 'succeeded' }).where('id', '=', releaseId).execute();
  await context.db.updateTable('deploys').set({ status: 'live', weight: 100 }).where('id', '=', deployId).execute();
  await setCurrentRelease(context.db, app.id, releaseId);
  return releaseId;
}

/** A one-off command that goes on, and reads its input. */
export async function seedRun({ context }: TestApi, user: TestUser, appId: string): Promise<RunId> {
  const app = await requireRow(context, appId);
  const release = await readBaseRelease(context.db, app.id);
  if (release === undefined) throw new Error('no release');
  const id = newUuid<RunId>();
  await insertRun(context.db, { id, app_id: app.id, user_id: user.id as UserId });
  const run = { id, spec: await workloadSpec(context, app, release), command: 'cat', input: true };
  await context.platform.workloads.runAttached(run, new AbortController().signal)[Symbol.asyncIterator]().next();
  return id;
}

async function requireRow({ db }: TestApi['context'], appId: string) {
  const app = await readAppById(db, appId as AppId);
  if (app === undefined) throw new Error('no such app');
  return app;
}

/** Another user, invited into the tenant of `owner` and acting there; their own tenant is gone. */
export async function joinTenant(test: TestApi, owner: TestUser, role: Role): Promise<TestUser> {
  const user = await test.signUp();
  const invited = await test.ask('POST', '/v1/tenant/invitations', { as: owner, json: { email: user.email, role } });
  const joined = await test.ask('POST', '/v1/invitations/accept', { as: user, json: { token: invited.body.data.token } });
  if (joined.status !== 200) throw new Error(`joining answered ${joined.status}: ${JSON.stringify(joined.body)}`);
  await test.context.db
    .deleteFrom('tenants')
    .where('id', '=', user.tenantId as TenantId)
    .execute();
  return { ...user, tenantId: owner.tenantId };
}
