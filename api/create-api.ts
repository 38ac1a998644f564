import { OpenAPIHono } from '@hono/zod-openapi';
import type { Api, ApiContext, ApiEnv } from '#api/http/api-env.ts';
import { type ApiMemory, createApiMemory } from '#api/http/api-memory.ts';
import { StatusError } from '#api/http/refusal.ts';
import { routedPath } from '#api/http/routed-path.ts';
import { createStreamLimits } from '#api/http/stream-limits.ts';
import { limitBody } from '#api/middleware/body-limit.ts';
import { crossOrigin } from '#api/middleware/cross-origin.ts';
import { entityTag } from '#api/middleware/entity-tag.ts';
import { createFailedCredentials } from '#api/middleware/failed-credentials.ts';
import { guard } from '#api/middleware/guard.ts';
import { idempotency } from '#api/middleware/idempotency.ts';
import { measure } from '#api/middleware/measure.ts';
import { requestId } from '#api/middleware/request-id.ts';
import { requireBody } from '#api/middleware/require-body.ts';
import { securityHeaders } from '#api/middleware/security-headers.ts';
import { addAccountRoutes } from '#api/routes/accounts/accounts.ts';
import { addSessionRoutes } from '#api/routes/accounts/sessions.ts';
import { addSshKeyRoutes } from '#api/routes/accounts/ssh-keys.ts';
import { addTeamRoutes } from '#api/routes/accounts/team.ts';
import { addTokenRoutes } from '#api/routes/accounts/tokens.ts';
import { addAddonRoutes } from '#api/routes/addons/addons.ts';
import { addAppRoutes } from '#api/routes/apps/apps.ts';
import { addDomainRoutes } from '#api/routes/apps/domains.ts';
import { addGitSourceRoutes } from '#api/routes/apps/git-source.ts';
import { addBuildCacheRoutes } from '#api/routes/builds/build-cache.ts';
import { addBuildRoutes } from '#api/routes/builds/builds.ts';
import { addPipelineRoutes } from '#api/routes/builds/pipeline.ts';
import { addQuotaRoutes } from '#api/routes/quotas/quotas.ts';
import { addConfigRoutes } from '#api/routes/releases/config.ts';
import { addProcessRoutes } from '#api/routes/releases/processes.ts';
import { addReleaseRoutes } from '#api/routes/releases/releases.ts';
import { addRunRoutes } from '#api/routes/releases/runs.ts';
import { addSettingsRoutes } from '#api/routes/releases/settings.ts';
import { addCommitRoutes } from '#api/routes/repositories/commits.ts';
import { addServiceRoutes, type ServiceFacts } from '#api/routes/service.ts';
import { addLogRoutes } from '#api/routes/telemetry/logs.ts';
import { addMetricRoutes } from '#api/routes/telemetry/metrics.ts';
import { addWebhookRoutes } from '#api/routes/webhooks/webhooks.ts';
import type { Clock } from '#shared/clock.ts';
import type { Accounts, ApiTokens, Sessions, SshKeys, Team } from '#shared/core/accounts/accounts.ts';
import type { AppAddons } from '#shared/core/addons/addons.ts';
import type { AppDeletion, Apps, Domains } from '#shared/core/apps/apps.ts';
import type { BuildCacheService, Builds, PipelineAccess } from '#shared/core/builds/builds.ts';
import type { TenantQuotas } from '#shared/core/quotas/quotas.ts';
import type { Config, Processes, Releases } from '#shared/core/releases/releases.ts';
import type { Runs } from '#shared/core/releases/runs.ts';
import type { Settings } from '#shared/core/releases/settings.ts';
import type { Commits } from '#shared/core/repositories/commits.ts';
import type { GitSources } from '#shared/core/repositories/git-sources.ts';
import type { AppMetrics, Logs } from '#shared/core/telemetry/telemetry.ts';
import type { Webhooks } from '#shared/core/webhooks/webhooks.ts';
import { AppError, notFound } from '#shared/errors.ts';
import type { IdempotencyKeys } from '#shared/idempotency/idempotency.ts';
import type { Identity } from '#shared/identity/identity.ts';
import { limits } from '#shared/limits.ts';
import type { Log } from '#shared/log.ts';
import type { Metrics } from '#shared/metrics/metrics.ts';
import { createCallLimits } from '#shared/rate-limits/call-limits.ts';
import type { EventLimits } from '#shared/rate-limits/event-limits.ts';
import type { RateLimits } from '#shared/rate-limits/rate-limits.ts';

/** The services of core that routes call. */
export interface ApiServices {
  accounts: Accounts;
  sessions: Sessions;
  sshKeys: SshKeys;
  apiTokens: ApiTokens;
  team: Team;
  apps: Apps;
  appDeletion: AppDeletion;
  builds: Builds;
  buildCache: BuildCacheService;
  pipelineAccess: PipelineAccess;
  releases: Releases;
  commits: Commits;
  config: Config;
  processes: Processes;
  runs: Runs;
  settings: Settings;
  addons: AppAddons;
  domains: Domains;
  logs: Logs;
  metrics: AppMetrics;
  gitSources: GitSources;
  quotas: TenantQuotas;
  webhooks: Webhooks;
}

/** Dependencies of the REST API. */
export interface ApiOptions extends ServiceFacts {
  services: ApiServices;
  identity: Identity;
  rateLimits: RateLimits;
  eventLimits: EventLimits;
  idempotencyKeys: IdempotencyKeys;
  clock: Clock;
  log: Log;
  metrics: Pick<Metrics, 'observeRequest'>;
  /** By default one of its own. */
  memory?: ApiMemory;
  /** Origins whose scripts may call the API: `https://dashboard.example.com`. */
  allowedOrigins: readonly string[];
  /** IP address of the client, as the gateway saw it. */
  clientAddress(request: Request): string;
}

/** The REST API as a `fetch` function. It needs no HTTP server and no particular runtime. */
export function createApi(options: ApiOptions): Api {
  const { services, identity, memory = createApiMemory() } = options;
  const failures = createFailedCredentials(options);
  const streams = createStreamLimits();
  const api: Api = new OpenAPIHono<ApiEnv>({ getPath: routedPath, defaultHook: refuseInvalid });

  api.use(measure(options.metrics), requestId(options), securityHeaders());
  if (options.allowedOrigins.length > 0) api.use(crossOrigin(options.allowedOrigins));
  api.use(
    guard({ ...options, ...services, failures, calls: createCallLimits(options.rateLimits, memory.uncountedCalls) }),
    // Not before `guard`: a body without a length is read to learn its length, and nobody reads the bodies of strangers.
    limitBody(limits.http),
    requireBody(),
    entityTag(),
    idempotency(options.idempotencyKeys, services.accounts),
  );
  api.onError((error, c) => respond(c, error));
  api.notFound((c) => answerUnrouted(api, c));

  addServiceRoutes(api, identity, options);
  addAccountRoutes(api, services.accounts, identity, options.clientAddress);
  addSessionRoutes(api, services.sessions);
  addSshKeyRoutes(api, services.sshKeys);
  addTokenRoutes(api, services.apiTokens);
  addTeamRoutes(api, services.team);
  addAppRoutes(api, { apps: services.apps, deletion: services.appDeletion, sources: services.gitSources });
  addBuildRoutes(api, services.builds, streams);
  addBuildCacheRoutes(api, services.buildCache);
  addPipelineRoutes(api, services.pipelineAccess);
  addReleaseRoutes(api, services.releases);
  addCommitRoutes(api, services.commits);
  addConfigRoutes(api, services.config);
  addProcessRoutes(api, services.processes);
  addRunRoutes(api, services.runs, streams);
  addSettingsRoutes(api, services.settings);
  addAddonRoutes(api, services.addons);
  addLogRoutes(api, services.logs, streams);
  addDomainRoutes(api, services.domains);
  addGitSourceRoutes(api, services.gitSources, services.webhooks);
  addWebhookRoutes(api, services.webhooks, { ...options, failures, memory });
  addMetricRoutes(api, services.metrics);
  addQuotaRoutes(api, services.quotas);
  return api;
}

function respond(c: ApiContext, error: unknown): Response {
  const { status, headers, body } = c.get('refuse')(error);
  return c.json(body, status, headers);
}

/** What each path parameter identifies. */
const nouns: Record<string, string> = {
  id: 'app',
  bid: 'build',
  rid: 'release',
  host: 'domain',
  type: 'process type',
  addon_type: 'add-on',
  key: 'SSH key',
  token_id: 'token',
  session_id: 'session',
  member: 'member',
  run: 'run',
  invitation: 'invitation',
};

interface Validation {
  success: boolean;
  target: string;
  error?: { issues: readonly { path: readonly PropertyKey[]; message: string }[] };
}

function refuseInvalid(result: Validation): void {
  if (result.success) return;
  const issues = result.error?.issues ?? [];
  // Nothing can have such an id. The answer is the same as for an id that does not exist.
  if (result.target === 'param') throw notFound(nouns[String(issues[0]?.path[0])] ?? 'resource');
  const details = issues.map(({ path, message }) => ({ path: path.map(String).join('.'), message }));
  const [first] = details;
  const where = first === undefined || first.path === '' ? 'The request' : `\`${first.path}\``;
  throw new AppError('validation_failed', `${where} is not valid: ${first?.message ?? 'see the documentation'}.`, { details });
}

/** 404 for an unknown path. 405 with the allowed methods for an unknown method. OPTIONS gets the allowed methods only. */
function answerUnrouted(api: Api, c: ApiContext): Response {
  const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].filter((method) => isRouted(api, method, c.req.path));
  if (methods.length === 0)
    return respond(c, new AppError('not_found', 'There is no such route. GET /v1/openapi.json lists all routes.'));
  const allow = [...(methods.includes('GET') ? ['HEAD'] : []), ...methods, 'OPTIONS'].join(', ');
  c.header('allow', allow);
  if (c.req.method === 'OPTIONS') return c.body(null, 204);
  return respond(
    c,
    new StatusError(405, 'validation_failed', `This route does not support ${c.req.method}. It supports ${allow}.`),
  );
}

function isRouted(api: Api, method: string, path: string): boolean {
  return api.router.match(method, path)[0].some(([[, route]]) => route.method !== 'ALL');
}
