import { sql } from 'kysely';
import { createApi } from '#api/create-api.ts';
import { type ApiMemory, createApiMemory } from '#api/http/api-memory.ts';
import { createServices } from '#deploy/control-plane.ts';
import type { EdgeSettings } from '#deploy/edge/edge-settings.ts';
import { systemClock } from '#shared/clock.ts';
import { createBindings } from '#shared/core/addons/bindings.ts';
import { createAddresses } from '#shared/core/addresses.ts';
import { lacksRoomForBuilds } from '#shared/core/builds/disk-rules.ts';
import type { Context } from '#shared/core/context.ts';
import { connectPostgres } from '#shared/database/postgres.ts';
import { createRemoteGitStorage } from '#shared/git/remote-git-storage.ts';
import { createPostgresIdempotencyKeys } from '#shared/idempotency/postgres-idempotency.ts';
import { createEmbeddedIdentity } from '#shared/identity/embedded/embedded-identity.ts';
import { issuerOf } from '#shared/identity/issuer.ts';
import type { PasswordHasher } from '#shared/identity/password-identity.ts';
import { graphileJobs } from '#shared/jobs/graphile/graphile-jobs.ts';
import { createLog, type Log } from '#shared/log.ts';
import { createRemotePlatform } from '#shared/platform/remote/remote-platform.ts';
import { createPostgresEventLimits } from '#shared/rate-limits/postgres-event-limits.ts';
import { createPostgresRateLimits } from '#shared/rate-limits/postgres-rate-limits.ts';
import { createRefusals, type Refusals } from '#shared/rate-limits/refusals.ts';
import { createCallTokens } from '#shared/remote/call-tokens.ts';
import { createRemotePort, type RemoteCaller } from '#shared/remote/remote-calls.ts';
import { createRemoteClient } from '#shared/remote/remote-client.ts';
import { createSecretBox, type SecretBox } from '#shared/secret-box.ts';
import { createRemoteOutside } from '#shared/sources/remote-sources.ts';
import { createSendingWakeups } from '#shared/wakeups/postgres-wakeups.ts';

/** Dependencies that differ by runtime. */
export interface EdgeOptions {
  settings: EdgeSettings;
  /** IP address of the client. */
  clientAddress(request: Request): string;
  /** Undefined: the worker hashes passwords. */
  hasher: PasswordHasher | undefined;
  /** Of connections to the database at once. */
  connections: number;
}

/** What several connections to the database can share. */
export interface EdgeParts {
  caller: RemoteCaller;
  platform: ReturnType<typeof createRemotePlatform>;
  secrets: SecretBox;
  log: Log;
  memory: ApiMemory;
  /** Sources, tokens and users that have reached a limit. */
  refusals: { events: Refusals; calls: Refusals };
}

/** The REST API without a disk, child processes and threads. */
export interface EdgeApi {
  fetch(request: Request): Promise<Response>;
  /** Ends the connections to the database. */
  close(): Promise<void>;
}

/** Prepares what every request uses, without a connection. */
export async function createEdgeParts({ secretKey, internalUrl, logLevel }: EdgeSettings): Promise<EdgeParts> {
  const masterKey = Uint8Array.fromBase64(secretKey);
  const tokens = await createCallTokens(masterKey, systemClock);
  const caller = createRemoteClient({ baseUrl: internalUrl, tokens });
  return {
    caller,
    platform: createRemotePlatform(caller, systemClock),
    secrets: await createSecretBox(masterKey),
    memory: createApiMemory(),
    refusals: { events: createRefusals(Date.now), calls: createRefusals(Date.now) },
    log: createLog(logLevel === 'info' ? 'warn' : logLevel, (line) => console.error(line)),
  };
}

/**
 * Creates the REST API for a runtime that only has web standards and TCP. It shares the database with the machine that runs the rest,
 * and asks that machine for what it cannot do itself (docs/edge.md).
 */
export function createEdgeApi(parts: EdgeParts, options: EdgeOptions): EdgeApi {
  const { settings, clientAddress, connections } = options;
  const { caller, platform, secrets, log, memory, refusals } = parts;
  const clock = systemClock;
  const warn = (error: Error): void => log.warn('The connection to the database was lost.', { error });
  const { db, pool, close } = connectPostgres(settings.databaseUrl, warn, connections, settings.databaseAuthentication);
  const wakeups = createSendingWakeups(pool, log);
  const hasher = options.hasher ?? createRemotePort<PasswordHasher>(caller, 'passwords', { calls: ['hash', 'verify'] });
  const issuer = issuerOf(settings.baseUrl);
  const identity = createEmbeddedIdentity({ db, secrets, clock, issuer, hasher });
  const eventLimits = createPostgresEventLimits(db, refusals.events);
  const context: Context = {
    db,
    clock,
    log,
    platform,
    git: createRemoteGitStorage(caller),
    ...createRemoteOutside(caller),
    jobs: graphileJobs,
    identity,
    secrets,
    addresses: createAddresses(settings),
    bindings: createBindings({ secrets }),
    wakeups,
    eventLimits,
    settings,
  };
  const api = createApi({
    services: createServices(context),
    identity,
    rateLimits: createPostgresRateLimits(db, undefined, refusals.calls),
    eventLimits,
    idempotencyKeys: createPostgresIdempotencyKeys({ db, secrets, clock }),
    allowedOrigins: settings.allowedOrigins,
    issuer,
    checkReady: async () => void (await sql`select 1`.execute(db)),
    // While no worker answers no build begins, but all that the database has is served: that is no reason to end this API.
    acceptsBuilds: async () => !(await lacksRoomForBuilds({ platform }).catch(() => true)),
    clientAddress,
    clock,
    log,
    metrics: { observeRequest: () => undefined },
    memory,
  });
  return {
    async fetch(request) {
      await platform.refresh();
      return api.fetch(request);
    },
    async close() {
      await wakeups.sent();
      await close();
    },
  };
}
