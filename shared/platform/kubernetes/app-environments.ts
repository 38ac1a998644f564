import { AppError } from '#shared/errors.ts';
import type { AppEnvironments } from '#shared/platform/app-environments.ts';
import { planAppServices } from './app-services-plan.ts';
import type { Cluster, ClusterObject } from './cluster/cluster.ts';
import { isPartOfKubernetes, type Kind, kinds } from './cluster/kinds.ts';
import { pollUntil } from './cluster/pause.ts';
import { ensureService } from './ensure-service.ts';
import { appLabels, managedLabels, tenantNamespace } from './names.ts';
import { planTenantNamespace, type TenantNamespaceSettings } from './tenant-namespace-plan.ts';

const deletionSeconds = 60;
const namespacedKinds: readonly Kind[] = Object.values(kinds).filter(({ namespaced }) => namespaced);

/** The tenant's namespace, with what its pods may use and reach, and the app's Services in it. */
export function createKubernetesAppEnvironments(cluster: Cluster, settings: TenantNamespaceSettings): AppEnvironments {
  return {
    async ensureApp({ appId, tenantId }) {
      await untilUsable(tenantNamespace(tenantId));
      // The namespace first; in it the policies before anything that they are for.
      for (const object of planTenantNamespace(tenantId, settings)) await cluster.apply(object);
      for (const service of planAppServices({ appId, tenantId })) await ensureService(cluster, service);
    },
    async deleteApp(appId) {
      const found: { kind: Kind; object: ClusterObject }[] = [];
      for (const kind of namespacedKinds)
        if (isPartOfKubernetes(kind) || (await cluster.serves(kind)))
          for (const object of await cluster.list({ kind, labels: appLabels(appId) })) found.push({ kind, object });
      const deleted = await Promise.all(found.map(({ kind, object }) => cluster.delete({ kind, ...placeOf(object) })));
      const services = found.filter(({ kind }) => kind === kinds.service);
      const namespaces = new Set(services.map(({ object }) => object.metadata.namespace ?? ''));
      for (const namespace of namespaces)
        if (await isEmpty(namespace)) await cluster.delete({ kind: kinds.namespace, name: namespace });
      return deleted.includes(true);
    },
  };

  /** A namespace that is being deleted takes nothing new, and is created anew once it is gone. */
  async function untilUsable(name: string): Promise<void> {
    const isUsable = await pollUntil(async () => {
      const namespace = await cluster.read({ kind: kinds.namespace, name });
      return namespace?.metadata.deletionTimestamp === undefined;
    }, deletionSeconds);
    if (!isUsable)
      throw new AppError(
        'internal',
        `The namespace ${name} is still being deleted after ${deletionSeconds} s. See what holds it: kubectl get namespace ${name} -o yaml`,
      );
  }

  async function isEmpty(namespace: string): Promise<boolean> {
    const services = await cluster.list({ kind: kinds.service, namespace, labels: managedLabels });
    return services.every(({ metadata }) => metadata.deletionTimestamp !== undefined);
  }
}

const placeOf = ({ metadata: { name, namespace } }: ClusterObject) => ({
  name,
  ...(namespace === undefined ? {} : { namespace }),
});
