import { z } from 'zod';
import { secondsPerDay, secondsPerMinute } from '#shared/durations.ts';
import { type GitIndexer, gitIndexers } from '#shared/git/git-indexers.ts';
import { isTolerable, type TolerableFault, tolerableFaults, toleratedByDefault } from '#shared/git/objects/tolerable-faults.ts';
import { logLevels } from '#shared/log.ts';
import { type KubernetesSettings, kubernetesSchema, kubernetesSettingsOf } from '#shared/settings/kubernetes-settings.ts';
import { defaultQuotas, parseQuotas, type Quotas, quotasMessage } from '#shared/settings/quotas.ts';

const portMessage = 'must be a port number from 1 to 65535';
const secondsMessage = `must be a number of seconds from 0 to ${secondsPerDay}`;
const port = z.coerce.number({ error: portMessage }).int(portMessage).min(1, portMessage).max(65535, portMessage);
const seconds = z.coerce.number({ error: secondsMessage }).min(0, secondsMessage).max(secondsPerDay, secondsMessage);
const commandSecondsMessage = `must be a whole number of seconds from 1 to ${secondsPerDay}`;
const commandSeconds = z.coerce
  .number({ error: commandSecondsMessage })
  .int(commandSecondsMessage)
  .min(1, commandSecondsMessage)
  .max(secondsPerDay, commandSecondsMessage);
const httpUrl = z.url({ protocol: /^https?$/ });

const cacheMessage = 'must be a number of mebibytes from 1 on';
const imageMessage = 'must be a number of MiB from 10 to 5000';
const keepMessage = 'must be a number of releases from 1 to 1000';
const reserveMessage = 'must be a number of mebibytes from 0 on';
const tolerateMessage = `must be 'none', or some of these with commas in between: ${tolerableFaults.join(', ')}; what can harm whoever clones is always refused`;
const networkPattern = /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)\/(?:[89]|[12]\d|3[0-2])$/;
const networkMessage = 'must be an IPv4 network such as 10.213.0.0/16';
const mirrorsMessage = 'must be registries and their mirrors, as docker.io=mirror.example.com:5000/hub, separated by commas';
const registriesMessage = 'must be names of registries, as registry.example.com:5000, separated by commas';
const registryPattern = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?$/;
const proxyMessage = 'must be addresses and networks such as 10.0.0.0/8 or 2001:db8::/32, separated by commas';
const originsMessage = 'must be origins such as https://dashboard.example.com, without a path, separated by commas';
const signUpsMessage = 'must be a number of accounts from 1 to 1000000';
const connectionsMessage = 'must be a number of connections from 1 on';
const orphanMessage = 'must be a number of days from 1 to 3650';
const bucketMessage = 'must be the address of a bucket without credentials, as https://s3.example.com/bucket or …/bucket/prefix';
/** Endpoint, bucket, and what every key begins with. */
const bucketPattern =
  /^(https?:\/\/[^/?#@]+\/[a-z0-9][a-z0-9.-]*)(?!.*(?:\/\.|[^:]\/\/))(?:\/([A-Za-z0-9][A-Za-z0-9._/-]*?))?\/?$/;

const schema = z.object({
  PAAS_DATA_DIR: z.string().min(1).default('./.paas'),
  PAAS_HOST: z.string().min(1).default('0.0.0.0'),
  PAAS_HTTP_PORT: port.default(8080),
  PAAS_HTTPS_PORT: port.default(8443),
  PAAS_SSH_PORT: port.default(2222),
  PAAS_SSH_LISTEN_PORT: port.optional(),
  PAAS_METRICS_PORT: port.default(9464),
  PAAS_INTERNAL_PORT: port.optional(),
  PAAS_INTERNAL_URL: httpUrl.optional(),
  PAAS_EDGE_PORT: port.optional(),
  PAAS_BASE_URL: httpUrl.optional(),
  PAAS_APPS_DOMAIN: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/, 'must be a lower-case domain name without port, as apps.example.com')
    .default('apps.localhost'),
  PAAS_DATABASE_URL: z.url({ protocol: /^postgres(ql)?$/ }).optional(),
  PAAS_DATABASE_AUTH: z.enum(['scram', 'tls', 'any'], { error: 'must be scram, tls or any' }).default('tls'),
  PAAS_PLATFORM: z.enum(['local', 'kubernetes']).default('local'),
  PAAS_SECRET_KEY: z
    .string()
    .regex(/^[A-Za-z0-9+/]{43}=$/, 'must be 32 bytes in base64, as `openssl rand -base64 32` prints')
    .optional(),
  PAAS_WEBHOOK_SECRET: z.string().min(16, 'must be at least 16 characters').optional(),
  PAAS_ALLOW_PRIVATE_SOURCES: z.enum(['true', 'false'], { error: 'must be true or false' }).default('false'),
  PAAS_GIT_TOLERATE: z
    .string()
    .transform((text) => (text === 'none' ? [] : [...new Set(text.split(/[\s,]+/).filter((id) => id !== ''))]))
    .pipe(z.array(z.custom<TolerableFault>((id) => typeof id === 'string' && isTolerable(id), { error: tolerateMessage })))
    .default([...toleratedByDefault]),
  PAAS_GIT_INDEXER: z.enum(gitIndexers, { error: `must be ${gitIndexers.join(' or ')}` }).default('native'),
  PAAS_OBJECT_STORE_URL: z.string().regex(bucketPattern, bucketMessage).optional(),
  PAAS_OBJECT_STORE_REGION: z.string().min(1).default('us-east-1'),
  PAAS_OBJECT_STORE_ACCESS_KEY_ID: z.string().optional(),
  PAAS_OBJECT_STORE_SECRET_ACCESS_KEY: z.string().optional(),
  PAAS_OBJECT_STORE_CACHE_MIB: z.coerce.number({ error: cacheMessage }).int(cacheMessage).min(1, cacheMessage).default(2048),
  PAAS_SIGNUPS_PER_ADDRESS: z.coerce
    .number({ error: signUpsMessage })
    .int(signUpsMessage)
    .min(1, signUpsMessage)
    .max(1_000_000, signUpsMessage)
    .default(300),
  PAAS_SIGNUP: z.enum(['open', 'invitation', 'closed']).default('open'),
  PAAS_APP_NETWORK: z
    .string()
    .regex(networkPattern, networkMessage)
    .refine((network) => Number(network.split('/')[1]) <= 24, 'must have at least 256 addresses, four for each app')
    .default('10.213.0.0/16'),
  PAAS_ALLOW_NETWORKS: z
    .string()
    .transform((text) => text.split(/[\s,]+/).filter((network) => network !== ''))
    .pipe(z.array(z.string().regex(networkPattern, networkMessage)))
    .default([]),
  PAAS_SHARE_REGISTRY_CREDENTIALS: z.enum(['true', 'false'], { error: 'must be true or false' }).default('false'),
  PAAS_IMAGE_MIRRORS: z
    .string()
    .transform((text) => text.split(/[\s,]+/).filter((entry) => entry !== ''))
    .pipe(z.array(z.string().regex(/^[a-z0-9.:-]+=[a-z0-9.:-]+(\/[a-z0-9._/-]+)?$/, mirrorsMessage)))
    .transform((entries) => Object.fromEntries(entries.map((entry) => entry.split('=') as [string, string])))
    .default({}),
  PAAS_INSECURE_REGISTRIES: z
    .string()
    .transform((text) => text.split(/[\s,]+/).filter((entry) => entry !== ''))
    .pipe(z.array(z.string().regex(registryPattern, registriesMessage)))
    .default([]),
  PAAS_TRUSTED_PROXIES: z
    .string()
    .transform((text) => text.split(/[\s,]+/).filter((proxy) => proxy !== ''))
    .pipe(z.array(z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()], { error: proxyMessage })))
    .default([]),
  PAAS_ALLOWED_ORIGINS: z
    .string()
    .transform((text) => text.split(/[\s,]+/).filter((origin) => origin !== ''))
    .pipe(z.array(z.string().refine(isOrigin, originsMessage)))
    .default([]),
  PAAS_CONNECTIONS_PER_ADDRESS: z.coerce
    .number({ error: connectionsMessage })
    .int(connectionsMessage)
    .min(1, connectionsMessage)
    .default(1000),
  PAAS_CANARY_STEP_SECONDS: seconds.default(1),
  PAAS_QUOTAS: z
    .string()
    .transform((text, check) => {
      const quotas = parseQuotas(text);
      if (quotas === undefined) check.addIssue({ code: 'custom', message: quotasMessage });
      return { ...defaultQuotas, ...quotas };
    })
    .default(defaultQuotas),
  PAAS_RELEASE_COMMAND_SECONDS: commandSeconds.default(10 * secondsPerMinute),
  PAAS_KEEP_RELEASES: z.coerce
    .number({ error: keepMessage })
    .int(keepMessage)
    .min(1, keepMessage)
    .max(1000, keepMessage)
    .default(10),
  PAAS_ORPHAN_DAYS: z.coerce
    .number({ error: orphanMessage })
    .int(orphanMessage)
    .min(1, orphanMessage)
    .max(3650, orphanMessage)
    .default(30),
  PAAS_IMAGE_MIB: z.coerce
    .number({ error: imageMessage })
    .int(imageMessage)
    .min(10, imageMessage)
    .max(5000, imageMessage)
    .optional(),
  PAAS_DISK_RESERVE_MIB: z.coerce.number({ error: reserveMessage }).int(reserveMessage).min(0, reserveMessage).optional(),
  PAAS_LOG_LEVEL: z.enum(logLevels).default('info'),
  ...kubernetesSchema,
});

/** Names of all settings. */
export const settingNames: readonly string[] = Object.keys(schema.shape);

/** What the command line reads: they may be set in the shell that starts the platform, which ignores them. */
const clientVariables = new Set(['PAAS_API_URL', 'PAAS_APP', 'PAAS_PASSWORD', 'PAAS_TENANT', 'PAAS_TOKEN']);

/** Everything an operator can set. Paths are as given; the main makes them absolute. */
export interface Settings {
  dataDir: string;
  /** Address that HTTP, HTTPS and SSH listen on. */
  host: string;
  httpPort: number;
  httpsPort: number;
  /** That users push to. */
  sshPort: number;
  /** Where the SSH server listens: `sshPort`, unless something in front of it leads from there to here. */
  sshListenPort: number;
  /** Of `GET /metrics`, on loopback only. */
  metricsPort: number;
  /** Where processes on other machines reach the worker; undefined: nowhere. */
  internalPort: number | undefined;
  /** Where the API at the edge listens; undefined: at `httpPort`. */
  edgePort: number | undefined;
  /** Of the worker on another machine, without trailing slash; undefined: it is reached by the data directory. */
  internalUrl: string | undefined;
  /** Without trailing slash. */
  baseUrl: string;
  appsDomain: string;
  /** Undefined: the embedded PostgreSQL. */
  databaseUrl: string | undefined;
  /** How the server of `databaseUrl` may ask for the password. The embedded one: by SCRAM only. */
  databaseAuthentication: 'scram' | 'tls' | 'any';
  platform: 'local' | 'kubernetes';
  /** Undefined on one machine. */
  kubernetes: KubernetesSettings | undefined;
  /** 32 bytes in base64; undefined: kept in a file of the data directory. */
  secretKey: string | undefined;
  webhookSecret: string | undefined;
  /** Whether sources may be fetched from hosts in private networks, and by plain HTTP: a git host on the operator's LAN. */
  allowPrivateSources: boolean;
  /** Faults of pushed and fetched objects that are let through, by git's id. */
  toleratedFaults: readonly TolerableFault[];
  /** What receives and reads packs of git. */
  gitIndexer: GitIndexer;
  /** Where packs are kept; undefined: in the data directory. */
  objectStore: ObjectStoreSettings | undefined;
  /** On one machine: IPv4 range from which apps get addresses, and networks that they may reach although they are private. */
  appNetwork: { range: string; allowed: readonly string[] };
  /** On one machine: whether builds of all tenants get the operator's credentials for package registries. */
  shareRegistryCredentials: boolean;
  /** On one machine: mirrors of registries of container images, and registries and mirrors that are used without HTTPS. */
  imageRegistries: { mirrors: Readonly<Record<string, string>>; insecure: readonly string[] };
  /** Addresses and networks of proxies in front of the gateway, whose X-Forwarded headers are believed. */
  trustedProxies: readonly string[];
  /** Origins whose scripts may call the API, as browsers send them. */
  allowedOrigins: readonly string[];
  /** HTTP and HTTPS connections that one source may have at once. */
  connectionsPerAddress: number;
  /** Accounts that one source may create a day, without an invitation. */
  signUpsPerAddress: number;
  /** Who gets an account: everybody, whoever is invited to a team, or nobody. */
  signup: 'open' | 'invitation' | 'closed';
  canaryStepSeconds: number;
  /** Of the data directory's disk, what builds leave free; undefined: by the size of the disk. */
  diskReserveBytes: number | undefined;
  /** On one machine: the most that an image, or the source of a build, may have; undefined: the usual 500 MiB. */
  imageBytes: number | undefined;
  /** So many newest releases of an app have their image, and can be rolled back to. */
  keptReleases: number;
  /** So long is kept what the platform has of apps that are not in the database. */
  orphanDays: number;
  /** A release command that runs for longer is ended, and its release fails. */
  releaseCommandSeconds: number;
  /** Of each tenant for which the operator has not changed them. */
  quotas: Quotas;
  logLevel: (typeof logLevels)[number];
}

export interface ObjectStoreSettings {
  /** Path style, without a slash at the end: `https://s3.example.com/bucket`. */
  bucketUrl: string;
  /** What every key begins with: '' or as `paas/`. */
  prefix: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
  /** Of packs that may be kept on local disk, too. */
  cacheBytes: number;
}

/** A setting that cannot be used; the message is one line that names it and says what it must be. */
export class SettingsError extends Error {}

/**
 * @param env the process environment; an empty value counts as unset
 * @throws SettingsError naming the first bad setting, or a `PAAS_` name that does not exist
 */
export function parseSettings(env: Readonly<Record<string, string | undefined>>): Settings {
  const given = Object.fromEntries(Object.entries(env).filter(([name, value]) => name.startsWith('PAAS_') && value !== ''));
  const unknown = Object.keys(given).find((name) => !(name in schema.shape) && !clientVariables.has(name));
  if (unknown !== undefined) {
    throw new SettingsError(`${unknown} is not a setting. There are: ${Object.keys(schema.shape).join(', ')}.`);
  }
  const parsed = schema.safeParse(given);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new SettingsError(
      `${issue?.path.filter((part) => typeof part === 'string').join('.') ?? 'A setting'}: ${issue?.message ?? 'is not valid'}.`,
    );
  }
  const values = parsed.data;
  return {
    dataDir: values.PAAS_DATA_DIR,
    host: values.PAAS_HOST,
    httpPort: values.PAAS_HTTP_PORT,
    httpsPort: values.PAAS_HTTPS_PORT,
    sshPort: values.PAAS_SSH_PORT,
    sshListenPort: values.PAAS_SSH_LISTEN_PORT ?? values.PAAS_SSH_PORT,
    metricsPort: values.PAAS_METRICS_PORT,
    internalPort: values.PAAS_INTERNAL_PORT,
    edgePort: values.PAAS_EDGE_PORT,
    internalUrl: values.PAAS_INTERNAL_URL?.replace(/\/+$/, ''),
    baseUrl: (values.PAAS_BASE_URL ?? `http://localhost:${values.PAAS_HTTP_PORT}`).replace(/\/+$/, ''),
    appsDomain: values.PAAS_APPS_DOMAIN,
    databaseUrl: values.PAAS_DATABASE_URL,
    databaseAuthentication: values.PAAS_DATABASE_AUTH,
    platform: values.PAAS_PLATFORM,
    kubernetes: values.PAAS_PLATFORM === 'kubernetes' ? readKubernetes(values) : undefined,
    secretKey: values.PAAS_SECRET_KEY,
    webhookSecret: values.PAAS_WEBHOOK_SECRET,
    allowPrivateSources: values.PAAS_ALLOW_PRIVATE_SOURCES === 'true',
    toleratedFaults: values.PAAS_GIT_TOLERATE,
    gitIndexer: values.PAAS_GIT_INDEXER,
    objectStore: objectStoreOf(values),
    shareRegistryCredentials: values.PAAS_SHARE_REGISTRY_CREDENTIALS === 'true',
    appNetwork: { range: values.PAAS_APP_NETWORK, allowed: values.PAAS_ALLOW_NETWORKS },
    imageRegistries: { mirrors: values.PAAS_IMAGE_MIRRORS, insecure: values.PAAS_INSECURE_REGISTRIES },
    trustedProxies: values.PAAS_TRUSTED_PROXIES,
    allowedOrigins: values.PAAS_ALLOWED_ORIGINS,
    connectionsPerAddress: values.PAAS_CONNECTIONS_PER_ADDRESS,
    signup: values.PAAS_SIGNUP,
    signUpsPerAddress: values.PAAS_SIGNUPS_PER_ADDRESS,
    canaryStepSeconds: values.PAAS_CANARY_STEP_SECONDS,
    diskReserveBytes: values.PAAS_DISK_RESERVE_MIB === undefined ? undefined : values.PAAS_DISK_RESERVE_MIB * 1024 * 1024,
    imageBytes: values.PAAS_IMAGE_MIB === undefined ? undefined : values.PAAS_IMAGE_MIB * 1024 * 1024,
    keptReleases: values.PAAS_KEEP_RELEASES,
    orphanDays: values.PAAS_ORPHAN_DAYS,
    releaseCommandSeconds: values.PAAS_RELEASE_COMMAND_SECONDS,
    quotas: values.PAAS_QUOTAS,
    logLevel: values.PAAS_LOG_LEVEL,
  };
}

function isOrigin(text: string): boolean {
  return URL.canParse(text) && /^https?:/.test(text) && new URL(text).origin === text;
}

function readKubernetes(values: z.infer<typeof schema>): KubernetesSettings {
  const settings = kubernetesSettingsOf(values);
  if ('missing' in settings) throw new SettingsError(`${settings.missing}: ${settings.why}.`);
  return settings;
}

function objectStoreOf(values: z.infer<typeof schema>): ObjectStoreSettings | undefined {
  const { PAAS_OBJECT_STORE_URL, PAAS_OBJECT_STORE_ACCESS_KEY_ID, PAAS_OBJECT_STORE_SECRET_ACCESS_KEY } = values;
  const together = { PAAS_OBJECT_STORE_URL, PAAS_OBJECT_STORE_ACCESS_KEY_ID, PAAS_OBJECT_STORE_SECRET_ACCESS_KEY };
  if (Object.values(together).every((value) => value === undefined)) return undefined;
  for (const [name, value] of Object.entries(together)) {
    if (value === undefined) throw new SettingsError(`${name}: must be set, as the other settings of the object store are.`);
  }
  const [, bucketUrl = '', prefix] = bucketPattern.exec(PAAS_OBJECT_STORE_URL ?? '') ?? [];
  return {
    bucketUrl,
    prefix: prefix === undefined ? '' : `${prefix}/`,
    region: values.PAAS_OBJECT_STORE_REGION,
    accessKeyId: PAAS_OBJECT_STORE_ACCESS_KEY_ID ?? '',
    secretAccessKey: PAAS_OBJECT_STORE_SECRET_ACCESS_KEY ?? '',
    cacheBytes: values.PAAS_OBJECT_STORE_CACHE_MIB * 1024 * 1024,
  };
}
