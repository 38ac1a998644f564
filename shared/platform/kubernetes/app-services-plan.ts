import type { V1Service } from '@kubernetes/client-node';
import type { AppId, TenantId } from '#shared/ids.ts';
import type { ClusterObject } from './cluster/cluster.ts';
import { appLabels, appObjectName, canaryServiceName, processLabels, tenantNamespace } from './names.ts';

/** Where an app's container listens: its PORT. */
export const appPort = 8080;

/**
 * The two Services between which the HTTPRoute divides an app's traffic. Argo Rollouts adds to their selectors the hash of the
 * release that each leads to, so they are created once and never applied again: that would remove the hash.
 */
export function planAppServices({ appId, tenantId }: { appId: AppId; tenantId: TenantId }): ClusterObject[] {
  const labels = appLabels(appId);
  return [appObjectName(appId), canaryServiceName(appId)].map(
    (name) =>
      ({
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name, namespace: tenantNamespace(tenantId), labels },
        spec: {
          selector: { ...labels, ...processLabels, 'process-type': 'web' },
          ports: [{ name: 'http', port: 80, targetPort: appPort }],
        },
      }) satisfies V1Service,
  );
}
