import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ApiOptions, createApi } from '#api/create-api.ts';
import type { Api } from '#api/http/api-env.ts';
import type { Services } from '#deploy/control-plane.ts';
import { createServices } from '#deploy/control-plane.ts';
import type { components } from '#shared/api-client/openapi-types.ts';
import { createBindings } from '#shared/core/addons/bindings.ts';
import { createAddresses } from '#shared/core/addresses.ts';
import { countBuildStarts } from '#shared/core/builds/build-starts-store.ts';
import { lacksRoomForBuilds } from '#shared/core/builds/disk-rules.ts';
import type { Context } from '#shared/core/context.ts';
import { createFakeResolver, type FakeResolver } from '#shared/dns/fake-resolver.ts';
import type { ErrorDetail } from '#shared/errors.ts';
import { createFakeGitStorage } from '#shared/git/storage/fake-git-storage.ts';
import { createFakeIdempotencyKeys } from '#shared/idempotency/fake-idempotency.ts';
import { createArgon2Hasher } from '#shared/identity/embedded/argon2-hasher.ts';
import { createEmbeddedIdentity } from '#shared/identity/embedded/embedded-identity.ts';
import { createPostgresSigningKeys } from '#shared/identity/embedded/postgres-signing-keys.ts';
import type { PasswordIdentity } from '#shared/identity/password-identity.ts';
import type { SigningKeyStore } from '#shared/identity/signing-keys.ts';
import type { AppId } from '#shared/ids.ts';
import { createFakeJobs } from '#shared/jobs/fake-jobs.ts';
import { migrateJobs } from '#shared/jobs/graphile/migrate-jobs.ts';
import { createLog } from '#shared/log.ts';
import { createPrometheusMetrics, type PrometheusMetrics } from '#shared/metrics/prometheus-metrics.ts';
import { createFakeAppLogs, type FakeAppLogs } from '#shared/platform/fake/app-logs.ts';
import { createFakePlatform } from '#shared/platform/fake/fake-platform.ts';
import { createFakeEventLimits } from '#shared/rate-limits/fake-event-limits.ts';
import { createFakeRateLimits } from '#shared/rate-limits/fake-rate-limits.ts';
import { createSecretBox } from '#shared/secret-box.ts';
import { createOutsideSourceHosts } from '#shared/sources/outside-source-hosts.ts';
import { createWakeups } from '#shared/wakeups/wakeups.ts';
import { apiRuntime, startApiRuntime } from '#test/support/api/api-runtime.ts';
import { type DocumentedOperation, readApiContract } from '#test/support/api/openapi-contract.ts';
import { ampleQuotas } from '#test/support/core/ample-quotas.ts';
import { createTestDatabase } from '#test/support/database/test-database.ts';
import { TestClock } from '#test/support/test-clock.ts';

export interface TestApi {
  readonly api: Api;
  /** What `api` was made of, to make others beside it. */
  readonly apiOptions: ApiOptions;
  readonly context: Context;
  readonly services: Services;
  readonly identity: PasswordIdentity;
  /** The keys its tokens are signed with, for tests that forge some. */
  readonly signingKeys: SigningKeyStore;
  readonly clock: TestClock;
  readonly logs: FakeAppLogs;
  readonly metrics: PrometheusMetrics;
  readonly resolver: FakeResolver;
  readonly operations: readonly DocumentedOperation[];
  /** What the operator's log got. */
  readonly logged: readonly string[];
  /** One request, without a check; to the runtime that is tested. The header `x-test-address` is the client's address. */
  request(path: string, init: RequestInit): Promise<Response>;
  /** Every answer is checked against the OpenAPI document. */
  ask(method: string, path: string, options?: AskOptions): Promise<Answer>;
  /** A new user in a tenant of their own. */
  signUp(): Promise<TestUser>;
  createApp(user: TestUser, name?: string): Promise<{ id: AppId; name: string }>;
  close(): Promise<void>;
}

export interface TestUser {
  readonly id: string;
  readonly email: string;
  readonly tenantId: string;
  readonly token: string;
  readonly refreshToken: string;
}

export interface AskOptions {
  as?: TestUser;
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as it is. */
  body?: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;
  headers?: Record<string, string>;
  /** Where the call comes from; by default a new address each, which no rate limit holds up. */
  address?: string;
}

export interface Answer {
  status: number;
  headers: Headers;
  /** Parsed when it is JSON; undefined when there is none. */
  body: AnswerBody;
}

type Schemas = components['schemas'];
type Merged<Each> = { [Key in Each extends unknown ? keyof Each : never]: Each extends Record<Key, infer Value> ? Value : never };

/** Every field that some resource has: a test knows which one it asked for, and the contract checks that it got that. */
type AnyResource = Merged<
  | Schemas['Addon']
  | Schemas['AddonCredentials']
  | Schemas['App']
  | Schemas['JoinedTenant']
  | Schemas['Member']
  | Schemas['NewApiToken']
  | Schemas['NewInvitation']
  | Schemas['Build']
  | Schemas['BuildCache']
  | Schemas['BuildCacheFlush']
  | Schemas['BuildLogLine']
  | Schemas['Deploy']
  | Schemas['Domain']
  | Schemas['DeliveryResult']
  | Schemas['ReceivedDelivery']
  | Schemas['GitSource']
  | Schemas['LogEntry']
  | Schemas['MetricSeries']
  | Schemas['Process']
  | Schemas['Release']
  | Schemas['Session']
  | Schemas['EndedSessions']
  | Schemas['Restart']
  | Schemas['Signup']
  | Schemas['SshKey']
  | Schemas['User']
>;

export interface AnswerBody {
  /** One resource, or a list of them. */
  data: AnyResource & AnyResource[];
  next_cursor: string | null;
  error: Omit<Schemas['Error']['error'], 'details'> & { details: ErrorDetail[] };
  /** Of the published issuer. */
  issuer: string;
  jwks_uri: string;
  keys: { kid: string }[];
}

export const testWebhookSecret = 'a secret that the git host knows';
export const testPassword = 'correct horse';
/** The rules are the same whatever a hash costs. */
const passwordCost = { memory: 8, passes: 1, parallelism: 1 };

/** Fewer than the limit of a token. */
const callsToForget = 500;

/** The API on the real core and a real database; what runs builds and apps are the fakes. */
export async function createTestApi(
  replaced: Partial<Pick<Services, 'apps' | 'builds' | 'logs'>> = {},
  runtime = apiRuntime,
): Promise<TestApi> {
  const database = await createTestDatabase();
  const directory = await mkdtemp(join(tmpdir(), 'paas-api-'));
  const clock = TestClock.running();
  const logged: string[] = [];
  const log = createLog('debug', (line) => logged.push(line));
  const issuer = 'http://localhost:8080/v1/auth';
  const logs = createFakeAppLogs(clock);
  const platform = createFakePlatform({ clock, logs });
  const resolver = createFakeResolver();
  const git = createFakeGitStorage({ directory, log });
  const masterKey = crypto.getRandomValues(new Uint8Array(32));
  const secrets = await createSecretBox(masterKey);
  const hasher = createArgon2Hasher(passwordCost);
  const identity = createEmbeddedIdentity({ db: database.db, secrets, clock, issuer, hasher });
  const context: Context = {
    db: database.db,
    clock,
    log,
    // Releases here come from seeds, without a build: whatever image they name is there.
    platform: { ...platform, images: { ...platform.images, imageExists: async () => true } },
    git,
    sources: createOutsideSourceHosts({ allowPrivate: true, seconds: 30 }),
    jobs: createFakeJobs(),
    identity,
    secrets,
    bindings: createBindings({ secrets }),
    addresses: createAddresses({
      baseUrl: 'http://localhost:8080',
      appsDomain: 'apps.localhost',
      httpPort: 8080,
      httpsPort: 8443,
      sshPort: 2222,
    }),
    wakeups: createWakeups(),
    eventLimits: createFakeEventLimits(() => clock.now().getTime()),
    resolver,
    settings: {
      signup: 'open',
      signUpsPerAddress: 20,
      canaryStepSeconds: 1,
      releaseCommandSeconds: 600,
      quotas: ampleQuotas,
      keptReleases: 10,
      orphanDays: 30,
      webhookSecret: testWebhookSecret,
      baseUrl: 'http://localhost:8080',
    },
  };
  const services = { ...createServices(context), ...replaced };
  const now = () => clock.now().getTime();
  const metrics = createPrometheusMetrics({ pipeline: 'memory', countBuildStarts: () => countBuildStarts(context.db), log });
  const apiOptions: ApiOptions = {
    services,
    identity,
    rateLimits: createFakeRateLimits(now),
    eventLimits: createFakeEventLimits(now),
    idempotencyKeys: createFakeIdempotencyKeys(now),
    allowedOrigins: [],
    issuer,
    checkReady: async () => undefined,
    acceptsBuilds: async () => !(await lacksRoomForBuilds({ platform })),
    clientAddress: (request) => request.headers.get('x-test-address') ?? '',
    clock,
    log,
    metrics,
  };
  const api = createApi(apiOptions);
  if (runtime !== undefined) await migrateJobs(database.pool, log);
  const remote =
    runtime === undefined
      ? undefined
      : await startApiRuntime(runtime, {
          context,
          hasher,
          masterKey,
          databaseUrl: database.url,
          webhookSecret: testWebhookSecret,
        });
  const contract = readApiContract();
  let addresses = 0;
  const newAddress = (): string => `2001:db8:0:${((addresses += 1)).toString(16)}::1`;
  let asked = 0;

  /** The clock of another runtime cannot be moved on, so what its tokens called is forgotten. Tests of exact limits use `request`. */
  const forgetCalls = async (): Promise<void> => {
    await database.db.deleteFrom('rate_limits').where('key', 'not like', 'unauthenticated%').execute();
  };

  const request: TestApi['request'] = async (path, init) => {
    const address = new Headers(init.headers).get('x-test-address') ?? '';
    return remote === undefined ? api.request(path, init) : remote.request(path, init, address);
  };

  const ask = async (method: string, path: string, options: AskOptions = {}): Promise<Answer> => {
    const headers = new Headers({ 'x-test-address': options.address ?? newAddress() });
    if (options.as !== undefined) headers.set('authorization', `Bearer ${options.as.token}`);
    if (options.json !== undefined) headers.set('content-type', 'application/json');
    for (const [name, value] of Object.entries(options.headers ?? {})) headers.set(name, value);
    const body = options.json === undefined ? options.body : JSON.stringify(options.json);
    if (remote !== undefined && options.as !== undefined && (asked += 1) % callsToForget === 0) await forgetCalls();
    const response = await request(path, { method, headers, ...(body === undefined ? {} : { body, duplex: 'half' }) });
    const type = response.headers.get('content-type')?.split(';')[0] ?? '';
    if (type === 'text/event-stream') await response.body?.cancel();
    const text = type === 'text/event-stream' ? '' : await response.text();
    const parsed: unknown = text === '' ? undefined : type === 'application/json' ? JSON.parse(text) : text;
    contract.check(method, path, response.status, type, parsed);
    contract.checkHeaders(method, path, response);
    return { status: response.status, headers: response.headers, body: parsed as AnswerBody };
  };

  const test: TestApi = {
    api,
    request,
    apiOptions,
    context,
    services,
    identity,
    signingKeys: createPostgresSigningKeys(database.db, secrets),
    clock,
    logs,
    metrics,
    resolver,
    operations: contract.operations,
    logged,
    ask,
    async signUp() {
      const email = `${crypto.randomUUID()}@example.com`;
      // Not by another runtime, where the hash of a password costs as much as a hundred requests.
      const response = await api.request('/v1/signup', {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-test-address': newAddress() },
        body: JSON.stringify({ email, password: testPassword }),
      });
      if (response.status !== 201) throw new Error(`sign-up answered ${response.status}: ${logged.at(-1)}`);
      const { user, tenant, access_token, refresh_token } = ((await response.json()) as AnswerBody).data;
      return { id: user.id, email, tenantId: tenant.id, token: access_token, refreshToken: refresh_token };
    },
    async createApp(user, name = `app-${crypto.randomUUID().slice(0, 8)}`) {
      const { status, body } = await ask('POST', '/v1/apps', { as: user, json: { name } });
      if (status !== 201) throw new Error(`creating an app answered ${status}: ${JSON.stringify(body)}`);
      return { id: body.data.id as AppId, name };
    },
    async close() {
      await remote?.close();
      await git.close();
      await database.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
  return test;
}
