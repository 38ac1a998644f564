import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getRequestListener } from '@hono/node-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { type AppId, newUuid } from '#shared/ids.ts';
import { createLog } from '#shared/log.ts';
import { createSocketFetch } from '#shared/net/socket-fetch.ts';
import { listenOnSocket } from '#shared/net/unix-socket.ts';
import { describeAppLogs } from '#shared/platform/contract/app-logs.ts';
import { describeBuildCaches } from '#shared/platform/contract/build-caches.ts';
import { createFakeAppLogs } from '#shared/platform/fake/app-logs.ts';
import { createFakePlatform } from '#shared/platform/fake/fake-platform.ts';
import type { Platform } from '#shared/platform/platform.ts';
import { createCallTokens } from '#shared/remote/call-tokens.ts';
import { createRemoteClient } from '#shared/remote/remote-client.ts';
import { createRemoteServer } from '#shared/remote/remote-server.ts';
import { createRemotePlatform, offerPlatform, type RemotePlatform } from './remote-platform.ts';

const masterKey = new Uint8Array(32).fill(7);
const log = createLog('silent', () => undefined);
const open: (() => Promise<unknown>)[] = [];
let directory: string;
let sockets = 0;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paas-remote-'));
});
afterAll(async () => {
  for (const close of open) await close();
  await rm(directory, { recursive: true });
});

/** The platform over HTTP on a unix socket, as a process of the API has it. */
async function reach(platform: Platform, key = masterKey): Promise<RemotePlatform> {
  const tokens = await createCallTokens(masterKey, systemClock);
  const answer = createRemoteServer({ ports: offerPlatform(platform), tokens, log });
  const server = createServer(getRequestListener(answer));
  const socketPath = join(directory, `${sockets++}.sock`);
  await listenOnSocket(server, socketPath);
  open.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const caller = createRemoteClient({
    baseUrl: 'http://worker',
    tokens: await createCallTokens(key, systemClock),
    fetch: createSocketFetch(socketPath),
  });
  return createRemotePlatform(caller, systemClock);
}

const fakePlatform = (): Platform => createFakePlatform({ clock: systemClock });

describeAppLogs('remote', async () => {
  const fake = createFakeAppLogs(systemClock);
  const { logs } = await reach({ ...fakePlatform(), logs: fake });
  return {
    logs: {
      readLogs: (...args) => logs.readLogs(...args),
      followLogs: (...args) => logs.followLogs(...args),
      appendPlatformLog: (...args) => fake.appendPlatformLog(...args),
      deleteLogs: (...args) => fake.deleteLogs(...args),
    },
    print: async (appId, process, releaseVersion, lines) => {
      for (const message of lines) fake.write(appId, { process, releaseVersion, message });
    },
    stop: async () => undefined,
  };
});

describeBuildCaches('remote', async () => (await reach(fakePlatform())).caches);

describe('a platform in another process', () => {
  it('has the capabilities of the real one, and confines nothing before it knows them', async () => {
    const platform = await reach({ ...fakePlatform(), capabilities: { pipeline: 'tekton', sandbox: true } });
    expect(platform.capabilities.sandbox).toBe(false);
    await platform.refresh();
    expect(platform.capabilities).toEqual({ pipeline: 'tekton', sandbox: true });
  });

  it('does not answer callers with another secret key', async () => {
    const stranger = await reach(fakePlatform(), new Uint8Array(32).fill(8));
    await expect(stranger.caches.ensureCache(newUuid<AppId>())).rejects.toMatchObject({ code: 'unauthorized' });
  });

  it('leaves the work of jobs to the worker', async () => {
    const platform = await reach(fakePlatform());
    await expect(platform.workloads.deleteWorkload(newUuid<AppId>())).rejects.toMatchObject({
      message: expect.stringContaining('worker') as string,
    });
  });

  it('reports that the other machine is down, and what it said about errors of the platform stays in its log', async () => {
    const gone = createRemoteClient({
      baseUrl: 'http://worker',
      tokens: await createCallTokens(masterKey, systemClock),
      fetch: createSocketFetch(join(directory, 'nobody.sock')),
    });
    const message = /cannot be reached/;
    await expect(createRemotePlatform(gone, systemClock).caches.readCache(newUuid<AppId>())).rejects.toThrow(message);

    const broken = fakePlatform();
    const failing = { ...broken.caches, readCache: () => Promise.reject(new Error('secret path')) };
    const { caches } = await reach({ ...broken, caches: failing });
    const error = await caches.readCache(newUuid<AppId>()).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'internal' });
    expect(String(error)).not.toContain('secret path');
  });
});
