import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { V1Container, V1Deployment, V1PodTemplateSpec } from '@kubernetes/client-node';
import type { AppId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';
import { splitWords } from '#shared/platform/command-words.ts';
import { configWithClientVariables } from '#shared/platform/workload-environment.ts';
import type { ProcessSpec, WorkloadSpec } from '#shared/platform/workloads.ts';
import { appPort } from '../app-services-plan.ts';
import type { ClusterObject } from '../cluster/cluster.ts';
import { imageBuilderOf } from '../images/image-address.ts';
import { appLabels, appObjectName, bindingSecretName, canaryServiceName, processLabels, tenantNamespace } from '../names.ts';
import { type PullSettings, planPullSecretReference } from '../pull-secret-plan.ts';
import { planSecret } from '../secret-plan.ts';

/** The process type that visitors reach. */
export const webType = 'web';

const probePeriodSeconds = 2;
const defaultHealthSeconds = limits.app.healthTimeoutSeconds.usual;
/** For a node and for the pull of an image. */
const scheduleSeconds = 540;

/** What the operator decides about apps' pods. */
export interface WorkloadSettings {
  /** Starts a shell command line in an image as the builds make it. */
  launcher: readonly string[];
  /** Of every instance. */
  memory: string;
  /** Of the sandbox that pods run in, as 'gvisor'; undefined: the cluster's default. */
  runtimeClass: string | undefined;
  /** As for the tenants' namespaces. */
  pullSecret?: PullSettings | undefined;
  /** The Gateway's listeners for a host: the parents of the app's HTTPRoute. */
  parentsOf(host: string): object;
  /** Whether the Gateway's HTTPRoutes have `sessionPersistence`, which is in the experimental channel of the Gateway API. */
  hasSessions: boolean;
}

/** On the Rollout and the Deployments: of which release their template is. */
export const releaseAnnotations = ({ releaseId, releaseVersion }: WorkloadSpec): Record<string, string> => ({
  'paas/release-id': releaseId,
  'paas/release-version': String(releaseVersion),
});

/** The Deployment of a process type other than 'web'. */
export function processName(appId: AppId, type: string): string {
  const plain = type.toLowerCase().replaceAll('_', '-').slice(0, 40).replace(/-+$/, '');
  // Types that differ only in what a name cannot have must not share one.
  const suffix = plain === type ? '' : `-${createHash('sha256').update(type).digest('hex').slice(0, 6)}`;
  return type === webType ? appObjectName(appId) : `${appObjectName(appId)}-${plain}${suffix}`;
}

/** The Secret with a release's variables. A release never changes, and pods of two releases run at the same time. */
export function releaseSecretName(appId: AppId, releaseVersion: number): string {
  return `${appObjectName(appId)}-v${releaseVersion}`;
}

/** The release as a whole, so that the platform can return to it: `spec` is the WorkloadSpec as JSON. */
export function releaseRecordName(appId: AppId, releaseVersion: number): string {
  return `${releaseSecretName(appId, releaseVersion)}-record`;
}

/** The Secrets of a release: its variables, its record, and what its add-ons give. */
export function planReleaseSecrets(spec: WorkloadSpec): ClusterObject[] {
  const { appId, releaseVersion, bindings } = spec;
  const secret = (name: string, values: Readonly<Record<string, string>>): ClusterObject =>
    planSecret({ name, namespace: tenantNamespace(spec.tenantId), labels: appLabels(appId) }, values);
  return [
    secret(releaseSecretName(appId, releaseVersion), configWithClientVariables(spec)),
    secret(releaseRecordName(appId, releaseVersion), { spec: JSON.stringify(spec) }),
    ...bindings.map(({ addonType, variables }) => secret(bindingSecretName(appId, addonType), variables)),
  ];
}

/** The Deployment of a process type. That of 'web' has no pods: the Rollout that refers to it starts them. */
export function planDeployment(spec: WorkloadSpec, process: ProcessSpec, settings: WorkloadSettings): ClusterObject {
  const { appId } = spec;
  const labels = { ...appLabels(appId), ...processLabels, 'process-type': process.type };
  const isWeb = process.type === webType;
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: {
      name: processName(appId, process.type),
      namespace: tenantNamespace(spec.tenantId),
      labels,
      annotations: releaseAnnotations(spec),
    },
    spec: {
      replicas: isWeb ? 0 : process.quantity,
      revisionHistoryLimit: 0,
      selector: { matchLabels: labels },
      template: planPod(spec, process, settings, labels),
    },
  } satisfies V1Deployment;
}

/**
 * The Rollout of the process type 'web', with a pause after each weight: core decides when it goes on.
 * @param weights percentages, ascending
 */
export function planRollout(spec: WorkloadSpec, quantity: number, weights: readonly number[]): ClusterObject {
  const { appId, tenantId } = spec;
  const name = appObjectName(appId);
  const namespace = tenantNamespace(tenantId);
  return {
    apiVersion: 'argoproj.io/v1alpha1',
    kind: 'Rollout',
    metadata: { name, namespace, labels: appLabels(appId) },
    spec: {
      replicas: quantity,
      revisionHistoryLimit: 1,
      // The controller gives up after the instances have had their time to start.
      progressDeadlineSeconds: bootSeconds(spec) + scheduleSeconds,
      workloadRef: { apiVersion: 'apps/v1', kind: 'Deployment', name, scaleDown: 'never' },
      strategy: {
        canary: {
          stableService: name,
          canaryService: canaryServiceName(appId),
          abortScaleDownDelaySeconds: 10,
          scaleDownDelaySeconds: 10,
          trafficRouting: { plugins: { 'argoproj-labs/gatewayAPI': { httpRoute: name, namespace } } },
          steps: weights.flatMap((weight) => [{ setWeight: weight }, { pause: {} }]),
        },
      },
    },
  };
}

/** A visitor stays with one instance, and so with its release, as long as it has weight and instances. */
const sessionPersistence = { sessionName: 'paas-session', type: 'Cookie', cookieConfig: { lifetimeType: 'Session' } };

/** The HTTPRoute. Its weights belong to Argo Rollouts as soon as it exists, so of an existing one only hosts are patched. */
export function planRoute(spec: WorkloadSpec, settings: WorkloadSettings): ClusterObject {
  const { appId, tenantId } = spec;
  const backend = (name: string, weight: number) => ({ group: '', kind: 'Service', name, port: 80, weight });
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: { name: appObjectName(appId), namespace: tenantNamespace(tenantId), labels: appLabels(appId) },
    spec: {
      ...planHosts(spec, settings),
      rules: [
        {
          matches: [{ path: { type: 'PathPrefix', value: '/' } }],
          backendRefs: [backend(appObjectName(appId), 100), backend(canaryServiceName(appId), 0)],
          ...(settings.hasSessions && spec.sessionAffinity !== false ? { sessionPersistence } : {}),
        },
      ],
    },
  };
}

interface RouteSpec {
  rules: readonly { backendRefs?: readonly { name: string; weight?: number }[] }[];
}

/**
 * Of a merge patch, the specification that makes a route which exists what it shall be: its hosts, and its rules if somebody has
 * changed them. Weights stay as Argo Rollouts has set them.
 */
export function planRouteChange(route: ClusterObject, found: ClusterObject): object {
  const { rules, ...hosts } = route.spec as RouteSpec;
  const current = (found.spec as Partial<RouteSpec>).rules ?? [];
  const weights = new Map(current.flatMap(({ backendRefs }) => (backendRefs ?? []).map(({ name, weight }) => [name, weight])));
  const wanted = rules.map((rule) => ({
    ...rule,
    backendRefs: rule.backendRefs?.map((backend) => ({ ...backend, weight: weights.get(backend.name) ?? backend.weight })),
  }));
  return isDeepStrictEqual(current, wanted) ? hosts : { ...hosts, rules: wanted };
}

/** The part of an HTTPRoute that says which hosts lead to it. */
export function planHosts({ hosts }: Pick<WorkloadSpec, 'hosts'>, { parentsOf }: Pick<WorkloadSettings, 'parentsOf'>): object {
  const parents = new Map(hosts.map((host) => parentsOf(host)).map((parent) => [JSON.stringify(parent), parent]));
  return { hostnames: hosts, parentRefs: [...parents.values()] };
}

/** A pod of any process, as namespaces of pod security level `restricted` admit it. */
export function planPod(
  spec: WorkloadSpec,
  { type, command }: Pick<ProcessSpec, 'type' | 'command'>,
  { launcher, memory, runtimeClass, pullSecret }: WorkloadSettings,
  labels: Readonly<Record<string, string>>,
): V1PodTemplateSpec & { metadata: object } {
  const { appId, releaseVersion, bindings, healthPath, healthTimeoutSeconds = defaultHealthSeconds } = spec;
  const isWeb = type === webType;
  const container: V1Container = {
    name: 'process',
    image: spec.imageUrl,
    ...planCommand(spec.imageUrl, command, launcher),
    env: [
      { name: 'PORT', value: String(appPort) },
      { name: 'HOME', value: '/home/app' },
    ],
    envFrom: [
      { secretRef: { name: releaseSecretName(appId, releaseVersion) } },
      ...bindings.map(({ addonType }) => ({ secretRef: { name: bindingSecretName(appId, addonType) } })),
    ],
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
    resources: { requests: { cpu: '100m', memory }, limits: { memory } },
    volumeMounts: [{ name: 'home', mountPath: '/home/app' }],
  };
  const probe = {
    ...(healthPath === undefined ? { tcpSocket: { port: appPort } } : { httpGet: { path: healthPath, port: appPort } }),
    periodSeconds: probePeriodSeconds,
    timeoutSeconds: healthTimeoutSeconds,
  };
  return {
    metadata: { labels: { ...labels, 'release-version': String(releaseVersion) } },
    spec: {
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: 30,
      ...planPullSecretReference(pullSecret),
      ...(runtimeClass === undefined ? {} : { runtimeClassName: runtimeClass }),
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 1001,
        runAsGroup: 1000,
        fsGroup: 1000,
        fsGroupChangePolicy: 'OnRootMismatch',
        seccompProfile: { type: 'RuntimeDefault' },
      },
      containers: [
        isWeb
          ? {
              ...container,
              ports: [{ name: 'http', containerPort: appPort }],
              startupProbe: { ...probe, failureThreshold: Math.ceil(bootSeconds(spec) / probePeriodSeconds) },
              readinessProbe: probe,
              // A pod that ends still gets requests until all gateways know it.
              lifecycle: { preStop: { sleep: { seconds: 5 } } },
            }
          : container,
      ],
      volumes: [{ name: 'home', emptyDir: { sizeLimit: '512Mi' } }],
    },
  };
}

/** An image of a Dockerfile has no launcher, and perhaps no shell either. */
function planCommand(imageUrl: string, command: string, launcher: readonly string[]): Pick<V1Container, 'command' | 'args'> {
  if (imageBuilderOf(imageUrl) === 'dockerfile') return { command: [...(splitWords(command) ?? ['/bin/sh', '-c', command])] };
  const [program, ...launcherArguments] = launcher;
  return { ...(program === undefined ? {} : { command: [program] }), args: [...launcherArguments, command] };
}

const bootSeconds = ({ bootTimeoutSeconds = limits.app.bootSeconds }: WorkloadSpec): number => bootTimeoutSeconds;
