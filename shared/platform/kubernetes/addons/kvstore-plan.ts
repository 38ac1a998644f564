import { createHash } from 'node:crypto';
import type { V1Deployment, V1Secret, V1Service } from '@kubernetes/client-node';
import { authSecretName, kvstoreName } from '#shared/names.ts';
import type { AddonCredentials, AddonSpec } from '#shared/platform/addons.ts';
import type { ClusterObject } from '../cluster/cluster.ts';
import { addonLabels, appLabels, bindingSecretName, processLabels, tenantNamespace } from '../names.ts';
import { planSecret } from '../secret-plan.ts';

/** SPEC.md §2. */
const port = 6379;
/** The rest of a server's memory is for the buffers of its clients. */
const dataShare = 0.75;
/** For the checks and for administration. */
const reservedConnections = 8;
/** The key with the password of the pod's own check. */
export const checkPasswordKey = 'check-password';

const configDirectory = '/etc/kvstore';
const socket = '/run/kvstore/admin.sock';

/**
 * Whether the server answers. By the way it reads the file with its users again, which changes when the password does: a new
 * pod would have no data. The user of this check may do nothing else, and its password is known inside the pod only.
 */
const check = [
  'sh',
  '-c',
  `export REDISCLI_AUTH="$(cat ${configDirectory}/${checkPasswordKey})" && valkey-cli -s ${socket} --user check acl load | grep -q OK`,
];

/** The Secret that the server's configuration is in. */
export function configSecretName(workloadName: string): string {
  return `${workloadName}-config`;
}

/** How an app reaches its store (SPEC.md §2, the auth secret). */
export function kvstoreCredentials({
  tenantId,
  appId,
  password,
}: Pick<AddonSpec, 'tenantId' | 'appId' | 'password'>): AddonCredentials {
  const host = `${kvstoreName(tenantId, appId)}.${tenantNamespace(tenantId)}.svc.cluster.local`;
  return { uri: `redis://:${password}@${host}:${port}`, host, port, password };
}

/** What a key-value store consists of. Of an existing Deployment nothing but the replicas is changed, by `replicas`. */
export interface KvstorePlan {
  /** Applied again each time: what the password determines, and who reaches the store. */
  surroundings: readonly ClusterObject[];
  /** Created once. */
  deployment: ClusterObject;
}

/**
 * Plans the objects of SPEC.md §2.
 * @param image of valkey 9 or later
 * @param checkPassword of the pod's own check; it stays the same when the app's password changes, since it is by that check that the
 *   server gets to know the new one
 */
export function planKvstore(spec: AddonSpec, image: string, checkPassword: string): KvstorePlan {
  const { appId, tenantId, replicas, memoryBytes, connections, password } = spec;
  const name = kvstoreName(tenantId, appId);
  const namespace = tenantNamespace(tenantId);
  const labels = { ...appLabels(appId), ...addonLabels('kvstore') };
  const credentials = kvstoreCredentials(spec);
  const metadata = { name, namespace, labels };
  const secret = (secretName: string, values: Record<string, string>): ClusterObject =>
    planSecret({ ...metadata, name: secretName }, values);
  return {
    surroundings: [
      secret(authSecretName(name), {
        uri: credentials.uri,
        host: credentials.host,
        port: String(credentials.port),
        password,
      }),
      // Hashes: who reads this learns no password of the app.
      secret(configSecretName(name), {
        'users.acl': [
          `user default on #${hash(password)} ~* &* +@all -@admin +client|list +client|kill +slowlog|get`,
          `user check on #${hash(checkPassword)} resetkeys resetchannels -@all +acl|load +ping`,
          '',
        ].join('\n'),
        [checkPasswordKey]: checkPassword,
      }),
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata,
        spec: { selector: labels, ports: [{ name: 'kvstore', port, targetPort: port }] },
      } satisfies V1Service,
      {
        apiVersion: 'networking.k8s.io/v1',
        kind: 'NetworkPolicy',
        metadata,
        spec: {
          podSelector: { matchLabels: labels },
          policyTypes: ['Ingress'],
          ingress: [
            {
              from: [{ podSelector: { matchLabels: { 'app-id': appId, ...processLabels } } }],
              ports: [{ protocol: 'TCP', port }],
            },
          ],
        },
      },
    ],
    deployment: {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: {
        replicas,
        selector: { matchLabels: labels },
        strategy: { type: 'Recreate' },
        template: {
          metadata: { labels },
          spec: {
            automountServiceAccountToken: false,
            enableServiceLinks: false,
            securityContext: {
              runAsNonRoot: true,
              runAsUser: 999,
              runAsGroup: 999,
              fsGroup: 999,
              seccompProfile: { type: 'RuntimeDefault' },
            },
            containers: [
              {
                name: 'kvstore',
                image,
                args: serverArguments({ memoryBytes, connections }),
                ports: [{ name: 'kvstore', containerPort: port }],
                securityContext: {
                  allowPrivilegeEscalation: false,
                  readOnlyRootFilesystem: true,
                  capabilities: { drop: ['ALL'] },
                },
                resources: {
                  requests: { cpu: '50m', memory: String(memoryBytes) },
                  limits: { memory: String(memoryBytes) },
                },
                readinessProbe: { exec: { command: check }, periodSeconds: 10, timeoutSeconds: 5 },
                livenessProbe: { tcpSocket: { port }, periodSeconds: 20, failureThreshold: 6 },
                volumeMounts: [
                  { name: 'config', mountPath: configDirectory, readOnly: true },
                  { name: 'run', mountPath: '/run/kvstore' },
                ],
              },
            ],
            volumes: [
              { name: 'config', secret: { secretName: configSecretName(name), defaultMode: 0o440 } },
              { name: 'run', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
            ],
          },
        },
      },
    } satisfies V1Deployment,
  };
}

/**
 * What an add-on gives the app, in a Secret whose keys become variables of the app's pods.
 * @param variables values in base64, as the secret has them from which they are copied
 */
export function planBindingSecret(
  { tenantId, appId, type }: Pick<AddonSpec, 'tenantId' | 'appId' | 'type'>,
  variables: Readonly<Record<string, string>>,
): ClusterObject {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: bindingSecretName(appId, type), namespace: tenantNamespace(tenantId), labels: appLabels(appId) },
    type: 'Opaque',
    data: { ...variables },
  } satisfies V1Secret;
}

/** No password is among them. Data is never written: there is no volume to write to. */
function serverArguments({ memoryBytes, connections }: Pick<AddonSpec, 'memoryBytes' | 'connections'>): string[] {
  return [
    'valkey-server',
    ...['--port', String(port), '--unixsocket', socket, '--unixsocketperm', '700'],
    ...['--aclfile', `${configDirectory}/users.acl`],
    ...['--maxmemory', String(Math.floor(memoryBytes * dataShare)), '--maxmemory-policy', 'noeviction'],
    ...['--maxclients', String(connections + reservedConnections), '--tcp-keepalive', '60'],
    ...['--save', '', '--appendonly', 'no'],
  ];
}

const hash = (text: string): string => createHash('sha256').update(text).digest('hex');
