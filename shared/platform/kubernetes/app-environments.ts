import type { AppEnvironments } from '#shared/platform/app-environments.ts';
import { planAppServices } from './app-services-plan.ts';
import type { Cluster, ClusterObject } from './cluster/cluster.ts';
import { kinds } from './cluster/kinds.ts';
import { appLabels, managedLabels } from './names.ts';
import { planTenantNamespace, type TenantNamespaceSettings } from './tenant-namespace-plan.ts';

/** The tenant's namespace, with what its pods may use and reach, and the app's Services in it. */
export function createKubernetesAppEnvironments(cluster: Cluster, settings: TenantNamespaceSettings): AppEnvironments {
  return {
    async ensureApp({ appId, tenantId }) {
      // The namespace first; in it the policies before anything that they are for.
      for (const object of planTenantNamespace(tenantId, settings)) await cluster.apply(object);
      for (const service of planAppServices({ appId, tenantId })) await cluster.create(service);
    },
    async deleteApp(appId) {
      const services = await cluster.list({ kind: kinds.service, labels: appLabels(appId) });
      const deleted = await Promise.all(services.map((service) => cluster.delete({ kind: kinds.service, ...placeOf(service) })));
      const namespaces = new Set(services.map(({ metadata }) => metadata.namespace ?? ''));
      for (const namespace of namespaces)
        if (await isEmpty(namespace)) await cluster.delete({ kind: kinds.namespace, name: namespace });
      return deleted.includes(true);
    },
  };

  async function isEmpty(namespace: string): Promise<boolean> {
    const services = await cluster.list({ kind: kinds.service, namespace, labels: managedLabels });
    return services.every(({ metadata }) => metadata.deletionTimestamp !== undefined);
  }
}

const placeOf = ({ metadata: { name, namespace } }: ClusterObject) => ({
  name,
  ...(namespace === undefined ? {} : { namespace }),
});
