import { access, constants, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '#shared/errors.ts';
import { ifMissing } from '#shared/files/if-missing.ts';
import { type AppId, isUuid } from '#shared/ids.ts';
import { createKeyedMutex } from '#shared/keyed-mutex.ts';
import { kvstoreName } from '#shared/names.ts';
import type { AddonSpec } from '#shared/platform/addons.ts';
import { createPortPool } from '#shared/platform/local/processes/port-pool.ts';
import type { AddonKind } from './addon-kind.ts';
import { KvstoreFiles, listKvstoreFiles } from './kvstore-files.ts';
import { hashPassword } from './kvstore-plan.ts';
import { type KvstoreDependencies, KvstoreServer } from './kvstore-server.ts';

export interface KvstoresOptions extends Omit<KvstoreDependencies, 'findProgram'> {
  /** `addons/kvstore` of the data directory. */
  directory: string;
  /** The PATH to find a server on. */
  path: string;
}

/** Below the ports of apps (port-pool.ts), so that none is ever given to both. */
const portRange = { from: 10_000, to: 19_999 };
const programs = ['valkey-server', 'redis-server'];
const missing =
  'No key-value server is installed on this machine. Ask the operator to install one: apt-get install -y redis-server';

/** Key-value stores: for each app one or more valkey or redis servers, each in a sandbox of its own and with the app's own uid. */
export function createKvstores({ directory, path, ...options }: KvstoresOptions): AddonKind {
  const { sandbox } = options;
  const dependencies: KvstoreDependencies = { ...options, findProgram: () => requireProgram(path) };
  const ports = createPortPool(portRange);
  const stores = new Map<AppId, KvstoreServer[]>();
  const mutex = createKeyedMutex<AppId>();
  const filesOf = (appId: AppId, index: number) => new KvstoreFiles(join(directory, appId, String(index)));

  async function add(spec: AddonSpec, index: number): Promise<KvstoreServer> {
    const name = kvstoreName(spec.tenantId, spec.appId);
    const record = {
      id: `${name}.${index}`,
      index,
      port: await ports.reserve(),
      uid: await sandbox.ensureUid(name),
      memoryBytes: spec.memoryBytes,
      connections: spec.connections,
      passwordHash: hashPassword(spec.password),
      adminPassword: crypto.getRandomValues(new Uint8Array(24)).toHex(),
      stopped: false,
    };
    const files = filesOf(spec.appId, index);
    await files.save(record);
    return new KvstoreServer(dependencies, spec.appId, files, record);
  }

  async function converge(server: KvstoreServer, { memoryBytes, connections, password }: AddonSpec): Promise<void> {
    const { record } = server;
    // The limit on memory is one of the sandbox it was started in. A stop keeps the data.
    if (record.memoryBytes !== memoryBytes || record.connections !== connections) await server.stop();
    const wasStopped = record.stopped;
    await server.change({ memoryBytes, connections, passwordHash: hashPassword(password), stopped: false });
    if (wasStopped) await server.change({ port: await ports.reserve(record.port) });
  }

  async function remove(server: KvstoreServer): Promise<void> {
    await server.destroy();
    ports.release(server.record.port);
  }

  return {
    async findProblem() {
      return sandbox.problem ?? ((await findProgram(path)) === undefined ? missing : undefined);
    },

    ensure: (spec) =>
      mutex.run(spec.appId, async () => {
        await requireProgram(path);
        const servers = stores.get(spec.appId) ?? [];
        stores.set(spec.appId, servers);
        for (const server of servers.splice(spec.replicas)) await remove(server);
        for (const server of servers) await converge(server, spec);
        for (let index = servers.length + 1; index <= spec.replicas; index += 1) servers.push(await add(spec, index));
        for (const server of servers) server.begin();
        const [first] = servers;
        if (first === undefined) throw new AppError('internal', 'A key-value store needs at least one server.');
        const { port } = first.record;
        const { password } = spec;
        return { uri: `redis://:${password}@127.0.0.1:${port}`, host: '127.0.0.1', port, password };
      }),

    stop: (appId) =>
      mutex.run(appId, async () => {
        const running = (stores.get(appId) ?? []).filter(({ record }) => !record.stopped);
        await Promise.all(
          running.map(async (server) => {
            await server.stop();
            await server.change({ stopped: true });
            ports.release(server.record.port);
          }),
        );
        return running.length > 0;
      }),

    delete: (appId) =>
      mutex.run(appId, async () => {
        const servers = stores.get(appId) ?? [];
        stores.delete(appId);
        await Promise.all(servers.map(remove));
        await rm(join(directory, appId), { recursive: true, force: true });
        return servers.length > 0;
      }),

    async read(appId) {
      const servers = stores.get(appId);
      if (servers === undefined) return undefined;
      const wanted = servers.filter(({ record }) => !record.stopped);
      return { ready: wanted.filter((server) => server.ready).length, desired: wanted.length };
    },

    async adopt() {
      const appIds = (await readdir(directory).catch(ifMissing([]))).filter(isUuid) as AppId[];
      for (const appId of appIds) {
        const servers: KvstoreServer[] = [];
        for (const { files } of await listKvstoreFiles(join(directory, appId))) {
          const record = await files.read();
          if (record === undefined) continue;
          if (!record.stopped) ports.hold(record.port);
          servers.push(new KvstoreServer(dependencies, appId, files, record));
        }
        stores.set(appId, servers);
        for (const server of servers) if (!server.record.stopped) server.begin();
      }
    },

    async stopAll() {
      await Promise.all([...stores.values()].flat().map((server) => server.stop()));
    },

    async detach() {
      await Promise.all([...stores.values()].flat().map((server) => server.detach()));
    },
  };
}

/** @throws AppError when there is none */
async function requireProgram(path: string): Promise<string> {
  const program = await findProgram(path);
  if (program === undefined) throw new AppError('internal', missing);
  return program;
}

async function findProgram(path: string): Promise<string | undefined> {
  const directories = [...path.split(':').filter((directory) => directory.startsWith('/')), '/usr/bin', '/usr/sbin'];
  for (const file of programs.flatMap((name) => directories.map((directory) => join(directory, name)))) {
    const executable = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (executable) return file;
  }
  return undefined;
}
