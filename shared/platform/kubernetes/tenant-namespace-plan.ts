import type { V1Namespace, V1ResourceQuota } from '@kubernetes/client-node';
import type { TenantId } from '#shared/ids.ts';
import { addonTypes } from '#shared/platform/addons.ts';
import { appPort } from './app-services-plan.ts';
import type { ClusterObject } from './cluster/cluster.ts';
import { addonLabels, addonPolicyName, managedLabels, processLabels, tenantNamespace } from './names.ts';
import { dnsEgress, internetEgress, podsOfNamespace } from './network-rules.ts';
import type { PullSettings } from './pull-secret-plan.ts';

/** What the operator decides about all tenants' namespaces. */
export interface TenantNamespaceSettings {
  /** The namespace whose pods bring visitors' requests. */
  gatewayNamespace: string;
  /** The worker's pods: they ask a release for its health path, as a visitor would. */
  controlPlane: { namespace: string; labels: Readonly<Record<string, string>> };
  /**
   * A ClusterRole that lets the platform use Secrets, and whom it is bound to in each tenant's namespace: the platform has no right to the
   * Secrets of all namespaces. Undefined when it has that right anyway.
   */
  secretsRole?: { name: string; serviceAccount: { name: string; namespace: string } } | undefined;
  /** Undefined for a registry from which everybody may pull. */
  pullSecret?: PullSettings | undefined;
  /** Private networks that apps may reach, as '10.1.0.0/16'. */
  allowedNetworks: readonly string[];
  /** Of pod security, as 'v1.36': a newer cluster does not change what is refused. */
  podSecurityVersion: string;
  /** What all pods of a tenant may request together. A rollout needs twice the pods of the app. */
  quota: { pods: number; cpu: string; memory: string; storage: string };
}

const addonPorts = { kvstore: 6379, database: 5432 } as const;

/** Everything of a tenant that is not of one app: its namespace, what it may use, and whom its pods reach. */
export function planTenantNamespace(tenantId: TenantId, settings: TenantNamespaceSettings): ClusterObject[] {
  const namespace = tenantNamespace(tenantId);
  const labels = { ...managedLabels, 'tenant-id': tenantId };
  const { podSecurityVersion, quota, gatewayNamespace, controlPlane, secretsRole, allowedNetworks } = settings;
  // The client's types are of no use here: they have other names than the API for `default` and `from`.
  const policy = (name: string, spec: object): ClusterObject => ({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name, namespace, labels },
    spec,
  });
  return [
    {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: {
        name: namespace,
        labels: {
          ...labels,
          'pod-security.kubernetes.io/enforce': 'restricted',
          'pod-security.kubernetes.io/enforce-version': podSecurityVersion,
        },
      },
    } satisfies V1Namespace,
    ...(secretsRole === undefined
      ? []
      : [
          {
            apiVersion: 'rbac.authorization.k8s.io/v1',
            kind: 'RoleBinding',
            metadata: { name: 'paas-secrets', namespace, labels },
            roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: secretsRole.name },
            subjects: [{ kind: 'ServiceAccount', ...secretsRole.serviceAccount }],
          },
        ]),
    {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'tenant', namespace, labels },
      spec: {
        hard: {
          pods: String(quota.pods),
          'requests.cpu': quota.cpu,
          'requests.memory': quota.memory,
          'requests.storage': quota.storage,
          'services.loadbalancers': '0',
          'services.nodeports': '0',
        },
      },
    } satisfies V1ResourceQuota,
    {
      apiVersion: 'v1',
      kind: 'LimitRange',
      metadata: { name: 'tenant', namespace, labels },
      spec: {
        limits: [
          {
            type: 'Container',
            defaultRequest: { cpu: '100m', memory: '128Mi', 'ephemeral-storage': '64Mi' },
            default: { memory: '512Mi', 'ephemeral-storage': '1Gi' },
          },
        ],
      },
    },
    policy('default-deny', { podSelector: {}, policyTypes: ['Ingress', 'Egress'] }),
    policy('allow-dns', {
      podSelector: {},
      policyTypes: ['Egress'],
      egress: dnsEgress,
    }),
    policy('allow-gateway', {
      podSelector: { matchLabels: { ...processLabels, 'process-type': 'web' } },
      policyTypes: ['Ingress'],
      ingress: [{ from: [podsOfNamespace(gatewayNamespace)] }],
    }),
    policy('allow-control-plane', {
      podSelector: { matchLabels: { ...processLabels, 'process-type': 'web' } },
      policyTypes: ['Ingress'],
      ingress: [
        {
          from: [{ ...podsOfNamespace(controlPlane.namespace), podSelector: { matchLabels: { ...controlPlane.labels } } }],
          ports: [{ protocol: 'TCP', port: appPort }],
        },
      ],
    }),
    policy('allow-internet', {
      podSelector: { matchLabels: processLabels },
      policyTypes: ['Egress'],
      egress: internetEgress(allowedNetworks),
    }),
    // Towards all add-ons of the tenant; the policy at each add-on lets in the pods of its own app only.
    ...addonTypes.map((type) =>
      policy(addonPolicyName(type), {
        podSelector: { matchLabels: processLabels },
        policyTypes: ['Egress'],
        egress: [
          { to: [{ podSelector: { matchLabels: addonLabels(type) } }], ports: [{ protocol: 'TCP', port: addonPorts[type] }] },
        ],
      }),
    ),
  ];
}
