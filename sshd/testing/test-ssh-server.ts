import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { systemClock } from '#shared/clock.ts';
import type { SshKeys } from '#shared/core/accounts/accounts.ts';
import type { Principal } from '#shared/core/accounts/principals.ts';
import type { Pushes } from '#shared/core/pushes/pushes.ts';
import { AppError, notFound } from '#shared/errors.ts';
import type { GitRepository, GitServer, GitStream } from '#shared/git/git-storage.ts';
import { type AppId, newTenantId, newUuid, type RepositoryId, type SshKeyId, type UserId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';
import { createLog } from '#shared/log.ts';
import { type HostKey, loadHostKeys } from '#sshd/host-keys.ts';
import type { SshLimits } from '#sshd/protection/ssh-limits.ts';
import { createSshServer, type SshServer } from '#sshd/server.ts';

/** A running SSH server with keys and apps in memory, and bare repositories that stock git serves. */
export interface TestSshServer {
  readonly port: number;
  readonly hostKeys: readonly HostKey[];
  readonly directory: string;
  readonly server: SshServer;
  /** The server's log, one JSON line an event. */
  readonly logLines: readonly string[];
  /** The keys that `resolveKey` was called with, in base64. */
  readonly lookups: readonly string[];
  /** @param publicKey `type base64 comment` */
  addKey(publicKey: string, principal: Principal): void;
  removeKey(publicKey: string): void;
  /** Creates an empty app with a bare repository. Resolves with the repository's directory. */
  addApp(name: string, owner: Principal): Promise<string>;
  close(): Promise<void>;
}

/** Generated once per process: an RSA key takes a second. */
let sharedHostKeys: Promise<readonly HostKey[]> | undefined;

/** A person in a tenant of their own. */
export function newPrincipal(email: string): Principal {
  return { userId: newUuid<UserId>(), email, tenantId: newTenantId(), role: 'owner' };
}

/**
 * Starts an SSH server on a free port of the loopback, with a temporary directory of its own.
 * @param changes what a test replaces; penalties are off unless `limits` says otherwise
 */
export async function openTestSshServer(
  changes: { limits?: Partial<SshLimits>; git?: GitServer; resolveKey?: SshKeys['resolveKey'] } = {},
): Promise<TestSshServer> {
  const directory = await mkdtemp(path.join(tmpdir(), 'paas-ssh-'));
  sharedHostKeys ??= loadHostKeys(path.join(directory, 'ssh'));
  const hostKeys = await sharedHostKeys;
  const logLines: string[] = [];
  const lookups: string[] = [];
  const keys = new Map<string, Principal & { keyId: SshKeyId; fingerprint: string }>();
  const apps = new Map<string, { owner: Principal; appId: AppId }>();

  const repositoryPath = (id: string): string => path.join(directory, `${id}.git`);
  const pushes: Pushes = {
    async openRepository(principal, appName, access) {
      const app = apps.get(appName);
      if (app === undefined || app.owner.tenantId !== principal.tenantId) throw notFound('app');
      if (access === 'write' && principal.role === 'viewer') throw new AppError('forbidden', 'Your role "viewer" may not push.');
      return {
        repositoryId: app.appId as string as RepositoryId,
        headRef: 'refs/heads/main',
        appId: app.appId,
        appName,
        applyPush: () => Promise.reject(new Error('stock git updates the refs itself')),
      };
    },
  };
  const server = createSshServer({
    sshKeys: {
      async resolveKey(blob) {
        const text = Buffer.from(blob).toString('base64');
        lookups.push(text);
        return changes.resolveKey === undefined ? keys.get(text) : changes.resolveKey(blob);
      },
    },
    pushes,
    git: changes.git ?? stockGit((repository) => repositoryPath(repository.repositoryId)),
    hostKeys,
    // All clients of a test file have one address, and many of them fail to log in.
    limits: { ...limits.ssh, slowFromPoints: 1e9, refuseFromPoints: 1e9, ...changes.limits },
    clock: systemClock,
    log: createLog('debug', (line) => logLines.push(line)),
  });
  const port = await server.listen(0, '127.0.0.1');

  return {
    port,
    hostKeys,
    directory,
    server,
    logLines,
    lookups,
    addKey(publicKey, principal) {
      keys.set(blobOf(publicKey), { ...principal, keyId: newUuid<SshKeyId>(), fingerprint: `SHA256:test-${principal.email}` });
    },
    removeKey(publicKey) {
      keys.delete(blobOf(publicKey));
    },
    async addApp(name, owner) {
      const appId = newUuid<AppId>();
      const child = spawn('git', ['init', '--quiet', '--bare', '--initial-branch=main', repositoryPath(appId)], {
        stdio: 'ignore',
      });
      const [code] = (await once(child, 'exit')) as [number];
      if (code !== 0) throw new Error(`git init exited with ${code}`);
      apps.set(name, { owner, appId });
      return repositoryPath(appId);
    },
    async close() {
      await server.close(0);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

function blobOf(publicKey: string): string {
  return publicKey.split(' ')[1] ?? '';
}

/** `git receive-pack` and `git upload-pack` as a GitServer. */
function stockGit(directoryOf: (repository: GitRepository) => string): GitServer {
  const serve = async (service: string, repository: GitRepository, stream: GitStream): Promise<number> => {
    const child = spawn('git', [service, directoryOf(repository)], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { PATH: process.env['PATH'], GIT_PROTOCOL: stream.protocol },
    });
    const exited = once(child, 'close') as Promise<[number | null]>;
    const feed = async (): Promise<void> => {
      for await (const chunk of stream.input) {
        if (!child.stdin.write(chunk)) await Promise.race([once(child.stdin, 'drain'), exited]);
      }
      child.stdin.end();
    };
    child.stdin.on('error', () => {});
    const feeding = feed();
    for await (const chunk of child.stdout) await stream.write(chunk as Buffer);
    const [status] = await exited;
    feeding.catch(() => {});
    return status ?? 1;
  };
  return {
    receivePack: async (repository, stream) => ({
      exitStatus: await serve('receive-pack', repository, stream),
      requestedRefs: 1,
    }),
    uploadPack: (repository, stream) => serve('upload-pack', repository, stream),
  };
}

/** A git server that runs `serve` for every command; it resolves with the exit status. */
export function createGitServer(serve: GitServer['uploadPack']): GitServer {
  return {
    uploadPack: serve,
    receivePack: async (repository, stream) => ({ exitStatus: await serve(repository, stream), requestedRefs: 1 }),
  };
}
