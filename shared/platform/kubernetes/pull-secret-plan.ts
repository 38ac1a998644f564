import type { TenantId } from '#shared/ids.ts';
import type { ClusterObject } from './cluster/cluster.ts';
import type { Credentials } from './images/registry-credentials.ts';
import { managedLabels, tenantNamespace } from './names.ts';
import { planSecret } from './secret-plan.ts';

/** How nodes get the images of apps from a registry that asks for a password. */
export interface PullSettings {
  /** Name of a Secret of the type `kubernetes.io/dockerconfigjson` in `paas-build`. It should allow no more than pulling. */
  secret: string;
  /** Of the registry, with port: 'registry.example.com'. */
  host: string;
}

/** Of the Secret in each tenant's namespace that pods name. Nothing mounts it: the kubelet reads it, no process of a pod does. */
export const pullSecretName = 'registry-pull';

/** The Secret with the credentials of this one registry, whatever else the operator's own has. */
export function planPullSecret(tenantId: TenantId, host: string, { username, password }: Credentials): ClusterObject {
  const auth = Buffer.from(`${username}:${password}`).toString('base64');
  return planSecret(
    {
      name: pullSecretName,
      namespace: tenantNamespace(tenantId),
      labels: { ...managedLabels, 'tenant-id': tenantId },
    },
    { '.dockerconfigjson': JSON.stringify({ auths: { [host]: { username, password, auth } } }) },
    'kubernetes.io/dockerconfigjson',
  );
}

/** Of the specification of a pod. */
export function planPullSecretReference(pullSecret: PullSettings | undefined): { imagePullSecrets?: { name: string }[] } {
  return pullSecret === undefined ? {} : { imagePullSecrets: [{ name: pullSecretName }] };
}
