/**
 * Our server of the push bench: the SSH server, git storage and PostgreSQL, wired as in the platform, but every name is a repository
 * and a push only moves refs. It is a process of its own, so that its CPU time and memory can be measured. Arguments: data
 * directory, URL of the database, public key. Sends its port by IPC. Answers 'delays' with the p99 of the event loop's delay in
 * milliseconds since the last request.
 */
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout } from 'node:timers/promises';
import { systemClock } from '#shared/clock.ts';
import { migrate } from '#shared/database/migrate.ts';
import { connectPostgres } from '#shared/database/postgres.ts';
import type { ApplyPush } from '#shared/git/git-storage.ts';
import { createGitStorage } from '#shared/git/storage/create-git-storage.ts';
import { type AppId, newTenantId, newUuid, type RepositoryId, type SshKeyId, type UserId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';
import { createLog } from '#shared/log.ts';
import { loadHostKeys } from '#sshd/host-keys.ts';
import { createSshServer } from '#sshd/server.ts';

const [, , directory = '', databaseUrl = '', publicKey = ''] = process.argv;
const log = createLog('warn', (line) => process.stderr.write(`${line}\n`));
const { db } = connectPostgres(databaseUrl, (error) => log.error('The database connection was lost.', { error }), 20);
await migrate(db);
const storage = createGitStorage({
  db,
  directory: join(directory, 'git'),
  log,
  limits: { ...limits.push, packBytes: 4 * 1024 ** 3 },
});

const person = { userId: newUuid<UserId>(), email: 'bench@localhost', tenantId: newTenantId(), role: 'owner' } as const;
const repositories = new Map<string, RepositoryId>();

const repacking = new Set<RepositoryId>();

/** Like the platform's job, one at a time for each repository. */
function repackSoon(repositoryId: RepositoryId): void {
  if (repacking.has(repositoryId)) return;
  repacking.add(repositoryId);
  void setTimeout(100)
    .then(() => storage.maintenance.repack(repositoryId, new AbortController().signal))
    .catch((error: unknown) => log.error('A repack failed.', { error }))
    .finally(() => repacking.delete(repositoryId));
}

const moveRefs =
  (repositoryId: RepositoryId): ApplyPush =>
  ({ commands, pack }) =>
    db.transaction().execute(async (transaction) => {
      await pack?.admit(transaction);
      const moved = await storage.refs.compareAndSwap(transaction, repositoryId, commands);
      if (await storage.maintenance.needsRepack(transaction, repositoryId)) repackSoon(repositoryId);
      return commands.map(({ name }) => (moved ? { name, status: 'ok' } : { name, status: 'rejected', reason: 'fetch first' }));
    });

const server = createSshServer({
  sshKeys: {
    async resolveKey(blob) {
      const known = Buffer.from(blob).toString('base64') === publicKey.split(' ')[1];
      return known ? { ...person, keyId: newUuid<SshKeyId>(), fingerprint: 'SHA256:bench' } : undefined;
    },
  },
  pushes: {
    async openRepository(_principal, appName) {
      const repositoryId = repositories.get(appName) ?? newUuid<RepositoryId>();
      repositories.set(appName, repositoryId);
      return { repositoryId, headRef: 'refs/heads/main', appId: newUuid<AppId>(), appName, applyPush: moveRefs(repositoryId) };
    },
  },
  git: storage.server,
  hostKeys: await loadHostKeys(join(directory, 'ssh')),
  limits: limits.ssh,
  clock: systemClock,
  log,
});

const delays = monitorEventLoopDelay({ resolution: 5 });
delays.enable();
process.on('message', () => {
  process.send?.({ p99: delays.percentile(99) / 1e6 });
  delays.reset();
});
process.send?.({ port: await server.listen(0, '127.0.0.1') });
