import { z } from 'zod';
import { istioTraffic, type TrafficMetrics } from '#shared/platform/traffic-metrics.ts';

/** Names of objects of Kubernetes. */
const dnsName = (what: string) =>
  z.string().regex(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/, `must be the name of ${what}, in lower case`);
const yesOrNo = z.enum(['true', 'false'], { error: 'must be true or false' }).default('false');
const quantityPattern = /^\d+(\.\d+)?(m|[kMGT]i?)?$/;
const quantity = z.string().regex(quantityPattern, 'must be a quantity of Kubernetes, as 2Gi or 500m');
const imagePattern = /^[a-z0-9.-]+(:\d+)?\/[a-z0-9._/-]+(:[\w.-]+)?(@sha256:[0-9a-f]{64})?$/;
const image = z.string().regex(imagePattern, 'must be an image with its registry, as docker.io/valkey/valkey:9.0');
const repositoryMessage = 'must be a repository with its registry and without a tag, as registry.example.com/paas';
const repository = z.string().regex(/^[a-z0-9.-]+(:\d+)?(\/[a-z0-9._-]+)+$/, repositoryMessage);
const httpUrl = z.url({ protocol: /^https?$/ });

/** `a=1,b=2` with some of these names, each value checked. */
function pairs<const Name extends string>(
  usual: Readonly<Record<Name, string>>,
  separator: RegExp,
  isValue: (value: string) => boolean,
  message: string,
) {
  return z
    .string()
    .transform((text, check): Readonly<Record<Name, string>> => {
      const entries = text.split(separator).filter((entry) => entry !== '');
      const named = entries.map((entry) => [entry.split('=', 1)[0] as Name, entry.slice(entry.indexOf('=') + 1)] as const);
      const isGood = named.every(([name, value], index) => {
        return name in usual && entries[index]?.includes('=') === true && isValue(value);
      });
      if (!isGood) check.addIssue({ code: 'custom', message });
      return { ...usual, ...Object.fromEntries(named) };
    })
    .prefault('');
}

const usualRoom = { pods: '100', cpu: '32', memory: '64Gi', storage: '100Gi' };
const roomMessage = 'must be some of pods, cpu, memory and storage with quantities, as pods=100,cpu=32,memory=64Gi,storage=100Gi';

const usualTraffic = {
  requests: istioTraffic.requests,
  durations: istioTraffic.durations,
  milliseconds_per_unit: String(istioTraffic.millisecondsPerUnit),
  status_label: istioTraffic.statusLabel,
  error_statuses: istioTraffic.errorStatuses,
  service_label: istioTraffic.serviceLabel,
  service_pattern: istioTraffic.servicePattern,
};
const trafficMessage = `must be some of ${Object.keys(usualTraffic).join(', ')} with values, as requests=NAME status_label=NAME, with spaces in between`;

/** The settings that only `PAAS_PLATFORM=kubernetes` has. */
export const kubernetesSchema = {
  PAAS_KUBECONFIG: z.string().min(1).optional(),
  PAAS_KUBERNETES_NAMESPACE: dnsName('a namespace').default('paas-system'),
  PAAS_KUBERNETES_SERVICE_ACCOUNT: dnsName('a service account').optional(),
  PAAS_KUBERNETES_SECRETS_ROLE: dnsName('a ClusterRole').optional(),
  PAAS_KUBERNETES_GATEWAY: z
    .string()
    .regex(/^[a-z0-9-]+\/[a-z0-9.-]+$/, 'must be the namespace and the name of a Gateway, as gateway/paas')
    .default('gateway/paas'),
  PAAS_KUBERNETES_SESSIONS: yesOrNo,
  PAAS_KUBERNETES_ISSUER: z
    .string()
    .regex(/^(ClusterIssuer|Issuer)\/[a-z0-9.-]+$/, 'must be an issuer of cert-manager, as ClusterIssuer/letsencrypt')
    .default('ClusterIssuer/letsencrypt'),
  PAAS_KUBERNETES_WILDCARD: yesOrNo,
  PAAS_KUBERNETES_RUNTIME_CLASS: dnsName('a RuntimeClass').optional(),
  PAAS_KUBERNETES_TENANT_ROOM: pairs(usualRoom, /[\s,]+/, (value) => quantityPattern.test(value), roomMessage),
  PAAS_KUBERNETES_REPOSITORY: repository.optional(),
  PAAS_KUBERNETES_REGISTRY_SECRET: dnsName('a Secret in paas-build').optional(),
  PAAS_KUBERNETES_PULL_SECRET: dnsName('a Secret in paas-build').optional(),
  PAAS_KUBERNETES_BUILDER: image.default('docker.io/paketobuildpacks/builder-jammy-base:0.4.500'),
  PAAS_KUBERNETES_RUN_IMAGE: image.optional(),
  PAAS_KUBERNETES_TOOLS_IMAGE: image.default('docker.io/curlimages/curl:8.17.0'),
  PAAS_KUBERNETES_DOCKERFILES: yesOrNo,
  PAAS_KUBERNETES_BUILDKIT_IMAGE: image.default('docker.io/moby/buildkit:v0.26.0-rootless'),
  PAAS_KUBERNETES_CRANE_IMAGE: image.default('gcr.io/go-containerregistry/crane/debug:v0.20.7'),
  PAAS_KUBERNETES_BUILD_CPU: quantity.default('500m'),
  PAAS_KUBERNETES_BUILD_MEMORY: quantity.default('2Gi'),
  PAAS_KUBERNETES_KVSTORE_IMAGE: image.default('docker.io/valkey/valkey:9.0'),
  PAAS_KUBERNETES_DATABASE_OPERATOR: dnsName('the namespace of CloudNativePG').default('cnpg-system'),
  PAAS_KUBERNETES_DATABASE_STORAGE: quantity.default('5Gi'),
  PAAS_LOKI_URL: httpUrl.optional(),
  PAAS_LOKI_TENANT: z.string().min(1).optional(),
  PAAS_PROMETHEUS_URL: httpUrl.optional(),
  PAAS_PROMETHEUS_TRAFFIC: pairs(usualTraffic, /\s+/, (value) => value !== '', trafficMessage),
};

const object = z.object(kubernetesSchema);

/** What an operator decides about a platform on Kubernetes. */
export interface KubernetesSettings {
  /** Path of a kubeconfig; undefined: the service account of the pod that the platform runs in. */
  kubeconfig: string | undefined;
  /** Of the platform's own pods: its Lease is there, and tenants let its worker in. */
  namespace: string;
  /**
   * A ClusterRole for Secrets, and the platform's service account, to which it is bound in each tenant's namespace. Undefined: the platform has
   * that right anyway.
   */
  secretsRole: { role: string; serviceAccount: string } | undefined;
  gateway: { namespace: string; name: string };
  /** Whether the Gateway has `sessionPersistence`. */
  hasSessions: boolean;
  issuer: { kind: 'ClusterIssuer' | 'Issuer'; name: string };
  /** Whether one certificate covers all hosts below the domain of the apps. */
  wildcard: boolean;
  /** Of the pods of apps and builds. */
  runtimeClass: string | undefined;
  /** What the pods of one tenant may request together; quantities of Kubernetes. */
  tenantRoom: { pods: number; cpu: string; memory: string; storage: string };
  /** Below which each app has a repository for its images. */
  repository: string;
  registrySecret: string | undefined;
  /** With which nodes pull; undefined: everybody may. */
  pullSecret: string | undefined;
  images: { builder: string; run: string | undefined; tools: string; buildkit: string; crane: string; kvstore: string };
  /** Whether Dockerfiles are built. */
  dockerfiles: boolean;
  build: { cpu: string; memory: string };
  database: { operatorNamespace: string; storage: string };
  loki: { url: string; tenant: string | undefined } | undefined;
  prometheus: { url: string; traffic: TrafficMetrics } | undefined;
}

/** A setting that is missing, by its name. */
export interface MissingSetting {
  missing: keyof typeof kubernetesSchema;
  why: string;
}

/** @param values that the schema has parsed */
export function kubernetesSettingsOf(values: z.infer<typeof object>): KubernetesSettings | MissingSetting {
  const { PAAS_KUBERNETES_REPOSITORY: images, PAAS_KUBERNETES_SERVICE_ACCOUNT: serviceAccount } = values;
  const role = values.PAAS_KUBERNETES_SECRETS_ROLE;
  if (images === undefined)
    return {
      missing: 'PAAS_KUBERNETES_REPOSITORY',
      why: 'must be set, as registry.example.com/paas: images of apps are pushed there',
    };
  const lokiUrl = values.PAAS_LOKI_URL;
  if (role !== undefined && serviceAccount === undefined)
    return { missing: 'PAAS_KUBERNETES_SERVICE_ACCOUNT', why: 'must be set, as PAAS_KUBERNETES_SECRETS_ROLE is' };
  if (role === undefined && serviceAccount !== undefined)
    return { missing: 'PAAS_KUBERNETES_SECRETS_ROLE', why: 'must be set, as PAAS_KUBERNETES_SERVICE_ACCOUNT is' };
  const [gatewayNamespace = '', gatewayName = ''] = values.PAAS_KUBERNETES_GATEWAY.split('/');
  const [issuerKind, issuerName = ''] = values.PAAS_KUBERNETES_ISSUER.split('/');
  const { pods, ...room } = values.PAAS_KUBERNETES_TENANT_ROOM;
  const traffic = values.PAAS_PROMETHEUS_TRAFFIC;
  return {
    kubeconfig: values.PAAS_KUBECONFIG,
    namespace: values.PAAS_KUBERNETES_NAMESPACE,
    secretsRole: role === undefined || serviceAccount === undefined ? undefined : { role, serviceAccount },
    gateway: { namespace: gatewayNamespace, name: gatewayName },
    hasSessions: values.PAAS_KUBERNETES_SESSIONS === 'true',
    issuer: { kind: issuerKind === 'Issuer' ? 'Issuer' : 'ClusterIssuer', name: issuerName },
    wildcard: values.PAAS_KUBERNETES_WILDCARD === 'true',
    runtimeClass: values.PAAS_KUBERNETES_RUNTIME_CLASS,
    tenantRoom: { pods: Number(pods), ...room },
    repository: images,
    registrySecret: values.PAAS_KUBERNETES_REGISTRY_SECRET,
    pullSecret: values.PAAS_KUBERNETES_PULL_SECRET,
    images: {
      builder: values.PAAS_KUBERNETES_BUILDER,
      run: values.PAAS_KUBERNETES_RUN_IMAGE,
      tools: values.PAAS_KUBERNETES_TOOLS_IMAGE,
      buildkit: values.PAAS_KUBERNETES_BUILDKIT_IMAGE,
      crane: values.PAAS_KUBERNETES_CRANE_IMAGE,
      kvstore: values.PAAS_KUBERNETES_KVSTORE_IMAGE,
    },
    dockerfiles: values.PAAS_KUBERNETES_DOCKERFILES === 'true',
    build: { cpu: values.PAAS_KUBERNETES_BUILD_CPU, memory: values.PAAS_KUBERNETES_BUILD_MEMORY },
    database: {
      operatorNamespace: values.PAAS_KUBERNETES_DATABASE_OPERATOR,
      storage: values.PAAS_KUBERNETES_DATABASE_STORAGE,
    },
    loki: lokiUrl === undefined ? undefined : { url: lokiUrl, tenant: values.PAAS_LOKI_TENANT },
    prometheus:
      values.PAAS_PROMETHEUS_URL === undefined
        ? undefined
        : {
            url: values.PAAS_PROMETHEUS_URL,
            traffic: {
              requests: traffic.requests,
              durations: traffic.durations,
              millisecondsPerUnit: Number(traffic.milliseconds_per_unit),
              statusLabel: traffic.status_label,
              errorStatuses: traffic.error_statuses,
              serviceLabel: traffic.service_label,
              servicePattern: traffic.service_pattern,
            },
          },
  };
}
