/**
 * A control plane that tests kill, in a process of its own: PostgreSQL, git storage and jobs are real, the platform is a fake.
 * It starts on command, so that the next one can be ready while this one is killed. Then it answers calls over IPC, and
 * serves git on a socket in its directory.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createJobHandlers, createServices, resumeApps } from '#deploy/control-plane.ts';
import { systemClock } from '#shared/clock.ts';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { openAddonPassword } from '#shared/core/addons/addon-secrets.ts';
import { readAddonRow } from '#shared/core/addons/addons-store.ts';
import { isDatabaseOutage } from '#shared/database/outages.ts';
import { connectPostgres } from '#shared/database/postgres.ts';
import { createGitStorage } from '#shared/git/storage/create-git-storage.ts';
import { serveGit } from '#shared/git/testing/git-server.ts';
import { startGraphileWorker } from '#shared/jobs/graphile/graphile-worker.ts';
import { createLog } from '#shared/log.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';
import { createFakePlatform } from '#shared/platform/fake/fake-platform.ts';
import { createCoreContext } from '#test/support/core/core-context.ts';
import type { ControlPlaneCall, ControlPlaneStart, PlatformFacts } from './control-plane-calls.ts';
import { listStoredTips } from './stored-tips.ts';

async function start({
  databaseUrl,
  directory,
  secretKey,
  owner,
}: ControlPlaneStart): Promise<(call: ControlPlaneCall) => Promise<unknown>> {
  const log = createLog('error', (line) => process.stderr.write(`${line}\n`));
  const { db, pool } = connectPostgres(databaseUrl, () => undefined, 10);
  const storage = createGitStorage({ db, directory: join(directory, 'git'), log, threads: 2 });
  // As a real start does.
  const swept = await storage.sweep(0);
  const platform = createFakePlatform({ clock: systemClock });
  const context = await createCoreContext({ db, log, clock: systemClock, platform, git: storage, secretKey });
  context.sources.listTips = (request) => listStoredTips(directory, request.url);
  const services = createServices(context);
  await resumeApps(context);
  const slots = { builds: 16, releases: 4, rollouts: 16, apps: 16, deletions: 4, repositories: 4, sources: 4, domains: 4 };
  await startGraphileWorker({ pool, db, handlers: createJobHandlers(context), log, slots, soleWorker: true });
  const open = async (appId: string) => {
    if (owner === undefined) throw new Error('Nobody has signed up.');
    return services.pushes.openRepository(owner, appId, 'write');
  };
  const applyPushTo =
    (repositoryId: string) =>
    async (...push: Parameters<Awaited<ReturnType<typeof open>>['applyPush']>) =>
      (await open(repositoryId)).applyPush(...push);
  // Left by the control plane before this one.
  await rm(join(directory, 'git.sock'), { force: true });
  await serveGit(storage, applyPushTo, directory);

  async function readFacts(): Promise<PlatformFacts> {
    const apps = await db.selectFrom('apps').select('id').execute();
    const versions: Record<string, number[]> = {};
    const addons: Record<string, boolean> = {};
    for (const { id } of apps) {
      versions[id] = (await platform.workloads.readInstances(id)).map(({ releaseVersion }) => releaseVersion);
      const row = await readAddonRow(db, id, 'kvstore');
      const spec = platform.addons.readSpec(id, 'kvstore');
      if (row !== undefined && owner !== undefined) {
        addons[id] = spec?.password === (await openAddonPassword(context, owner.tenantId, row));
      } else if (spec !== undefined) addons[id] = false;
    }
    return { swept, versions, addons };
  }

  return async (call) => {
    if (call.kind === 'sign up') {
      const { user, tenant } = await services.accounts.signUp({ email: 'ada@example.com', password: 'correct horse' });
      return services.accounts.resolvePrincipal({
        userId: user.id,
        email: user.email,
        requestedTenantId: tenant.id,
      }) satisfies Promise<Principal>;
    }
    if (call.kind === 'facts') return readFacts();
    if (owner === undefined) throw new Error('Nobody has signed up.');
    switch (call.kind) {
      case 'create app':
        return services.apps.createApp(owner, omitUndefined({ gitUrl: call.gitUrl }));
      case 'start build':
        return services.builds.startBuild(owner, call.app, {});
      case 'change config':
        return services.config.changeConfig(owner, call.app, { WORD: call.word });
      case 'create addon':
        return services.addons.createAddon(owner, call.app, { type: 'kvstore', plan: 'standard' });
      case 'rotate password':
        return services.addons.rotatePassword(owner, call.app, 'kvstore');
      case 'delete addon':
        return services.addons.deleteAddon(owner, call.app, 'kvstore');
      case 'deliver': {
        const body = new TextEncoder().encode(call.body);
        return services.webhooks.receive({ header: (name) => call.headers[name], body, appId: undefined });
      }
    }
  };
}

let answer: ((call: ControlPlaneCall) => Promise<unknown>) | undefined;

async function handle(message: { id: number; start?: ControlPlaneStart; call?: ControlPlaneCall }): Promise<void> {
  try {
    if (message.start !== undefined) answer = await start(message.start);
    const value = message.call === undefined ? null : await answer?.(message.call);
    process.send?.({ id: message.id, value: value ?? null });
  } catch (error) {
    const outage = isDatabaseOutage(error);
    process.send?.({ id: message.id, outage, error: error instanceof Error ? error.message : String(error) });
  }
}

process.on('message', (message: { id?: number }) => {
  if (message.id !== undefined) void handle({ ...message, id: message.id });
});
// The process that started it has ended.
process.on('disconnect', () => process.exit(1));
process.channel?.ref();
process.send?.({ ready: true });
