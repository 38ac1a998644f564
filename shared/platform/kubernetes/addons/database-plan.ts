import type { AppId } from '#shared/ids.ts';
import type { AddonCredentials, AddonSpec } from '#shared/platform/addons.ts';
import type { ClusterObject } from '../cluster/cluster.ts';
import { addonLabels, appLabels, processLabels, tenantNamespace } from '../names.ts';
import { planSecret } from '../secret-plan.ts';

const port = 5432;
/** Of the operator's own connections: replication, metrics, administration. */
const reservedConnections = 20;
/** PostgreSQL does not start with less. */
const leastMemoryBytes = 256 * 1024 * 1024;
/** Where the operator asks its instances for their state. */
const statusPort = 8000;

/** What the operator decides about databases. */
export interface DatabaseSettings {
  /** The namespace in which CloudNativePG runs. */
  operatorNamespace: string;
  /** Of each server's volume. */
  storage: string;
}

/** Of the CloudNativePG Cluster; it may have 50 characters at most. */
export function databaseName(appId: AppId): string {
  return `database-${appId}`;
}

/** How an app reaches its database: the server that accepts writes. */
export function databaseCredentials({
  tenantId,
  appId,
  password,
}: Pick<AddonSpec, 'tenantId' | 'appId' | 'password'>): AddonCredentials {
  const host = `${databaseName(appId)}-rw.${tenantNamespace(tenantId)}.svc.cluster.local`;
  return { uri: `postgresql://app:${password}@${host}:${port}/app`, host, port, password };
}

/**
 * Plans the Cluster, the secret that its role's password comes from, and the policy of its pods. The secret has the name and
 * the keys of the one that the operator would make, so that it is found where people look for it.
 */
export function planDatabase(spec: AddonSpec, { operatorNamespace, storage }: DatabaseSettings): ClusterObject[] {
  const { appId, tenantId, replicas, memoryBytes, connections, password } = spec;
  const name = databaseName(appId);
  const labels = { ...appLabels(appId), ...addonLabels('database') };
  const metadata = { name, namespace: tenantNamespace(tenantId), labels };
  const { uri, host } = databaseCredentials(spec);
  const memory = String(Math.max(memoryBytes, leastMemoryBytes));
  const values = { username: 'app', password, dbname: 'app', host, port: String(port), uri, 'fqdn-uri': uri };
  return [
    planSecret(
      // The operator gives the role a new password when this secret changes.
      { ...metadata, name: `${name}-app`, labels: { ...labels, 'cnpg.io/reload': 'true' } },
      values,
      'kubernetes.io/basic-auth',
    ),
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata,
      spec: {
        podSelector: { matchLabels: labels },
        policyTypes: ['Ingress', 'Egress'],
        ingress: [
          { from: [{ podSelector: { matchLabels: { 'app-id': appId, ...processLabels } } }], ports: [{ protocol: 'TCP', port }] },
          {
            from: [
              { podSelector: { matchLabels: labels } },
              { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': operatorNamespace } } },
            ],
            ports: [
              { protocol: 'TCP', port },
              { protocol: 'TCP', port: statusPort },
            ],
          },
        ],
        egress: [
          {
            to: [{ podSelector: { matchLabels: labels } }],
            ports: [
              { protocol: 'TCP', port },
              { protocol: 'TCP', port: statusPort },
            ],
          },
          // Each server asks the API server what it shall be.
          {
            ports: [
              { protocol: 'TCP', port: 443 },
              { protocol: 'TCP', port: 6443 },
            ],
          },
        ],
      },
    },
    {
      apiVersion: 'postgresql.cnpg.io/v1',
      kind: 'Cluster',
      metadata: { ...metadata, annotations: { 'cnpg.io/hibernation': 'off' } },
      spec: {
        instances: replicas,
        inheritedMetadata: { labels },
        enableSuperuserAccess: false,
        bootstrap: { initdb: { database: 'app', owner: 'app', secret: { name: `${name}-app` } } },
        storage: { size: storage },
        postgresql: { parameters: { max_connections: String(connections + reservedConnections) } },
        resources: { requests: { cpu: '100m', memory }, limits: { memory } },
      },
    },
  ];
}
