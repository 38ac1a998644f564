import type { Server } from 'node:http';
import { sql } from 'kysely';
import { type ApiOptions, type ApiServices, createApi } from '#api/create-api.ts';
import { createGitOverHttp } from '#api/git/git-over-http.ts';
import { createApiServer } from '#deploy/parts/api-server.ts';
import { closeServer } from '#deploy/parts/close-server.ts';
import type { Lifetime } from '#deploy/parts/lifetime.ts';
import { lacksRoomForBuilds } from '#shared/core/builds/disk-rules.ts';
import type { Context } from '#shared/core/context.ts';
import type { Pushes } from '#shared/core/pushes/pushes.ts';
import { issuerOf } from '#shared/identity/issuer.ts';
import { limits } from '#shared/limits.ts';

export interface ApiParts
  extends Pick<ApiOptions, 'rateLimits' | 'eventLimits' | 'idempotencyKeys' | 'allowedOrigins' | 'metrics'> {
  context: Context;
  services: ApiServices & { pushes: Pushes };
}

/**
 * Serves the REST API, and git over HTTP, to the gateway.
 * @param listen on a Unix socket that only the gateway reaches: the client addresses that it forwards are believed
 */
export async function serveApi(
  lifetime: Lifetime,
  { context, ...parts }: ApiParts,
  listen: (server: Server) => Promise<void>,
): Promise<void> {
  const { db, clock, identity, git, log, settings, platform } = context;
  const clientAddress = (request: Request): string =>
    request.headers.get('x-forwarded-for')?.split(',').at(-1)?.trim() ?? 'unknown';
  const api = createApi({
    ...parts,
    issuer: issuerOf(settings.baseUrl),
    checkReady: async () => void (await sql`select 1`.execute(db)),
    acceptsBuilds: async () => !(await lacksRoomForBuilds({ platform })),
    identity,
    clock,
    log,
    clientAddress,
  });
  const gitOverHttp = createGitOverHttp({
    ...parts.services,
    identity,
    git: git.server,
    rateLimits: parts.rateLimits,
    eventLimits: parts.eventLimits,
    clientAddress,
    clock,
    log,
  });
  const server = createApiServer({
    fetch: (request) => gitOverHttp(request) ?? api.fetch(request),
    clock,
    log,
    bodySeconds: limits.http.bodySeconds,
  });
  await listen(server);
  lifetime.onEnd(() => closeServer(server));
}
