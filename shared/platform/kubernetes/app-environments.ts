import { AppError } from '#shared/errors.ts';
import type { TenantId } from '#shared/ids.ts';
import type { AppEnvironments } from '#shared/platform/app-environments.ts';
import { planAppServices } from './app-services-plan.ts';
import type { Cluster, ClusterObject } from './cluster/cluster.ts';
import { isPartOfKubernetes, type Kind, kinds } from './cluster/kinds.ts';
import { pollUntil } from './cluster/pause.ts';
import { ensureService } from './ensure-service.ts';
import { readRegistryCredentials } from './images/registry-credentials.ts';
import { appLabels, managedLabels, tenantNamespace, tenantNamespacePrefix } from './names.ts';
import { planPullSecret } from './pull-secret-plan.ts';
import { planTenantNamespace, type TenantNamespaceSettings } from './tenant-namespace-plan.ts';

const deletionSeconds = 60;
const authorizationSeconds = 20;
/** All that an app may have objects of; Secrets apart. */
const kindsOfApps: readonly Kind[] = [
  ...[kinds.service, kinds.configMap, kinds.deployment, kinds.job, kinds.persistentVolumeClaim, kinds.networkPolicy],
  ...[kinds.rollout, kinds.httpRoute, kinds.pipelineRun, kinds.postgresCluster],
];

/** The tenant's namespace, with what its pods may use and reach, and the app's Services in it. */
export function createKubernetesAppEnvironments(cluster: Cluster, settings: TenantNamespaceSettings): AppEnvironments {
  return {
    async ensureApp({ appId, tenantId }) {
      await untilUsable(tenantNamespace(tenantId));
      // The namespace first; in it the policies before anything that they are for.
      for (const object of planTenantNamespace(tenantId, settings)) await cluster.apply(object);
      await untilSecretsAreAllowed(tenantNamespace(tenantId));
      await applyPullSecret(tenantId);
      for (const service of planAppServices({ appId, tenantId })) await ensureService(cluster, service);
    },
    async deleteApp(appId) {
      const labels = appLabels(appId);
      const found: { kind: Kind; object: ClusterObject }[] = [];
      for (const kind of kindsOfApps)
        if (isPartOfKubernetes(kind) || (await cluster.serves(kind)))
          for (const object of await cluster.list({ kind, labels })) found.push({ kind, object });
      // The platform may see Secrets in the tenants' namespaces only.
      for (const namespace of new Set(found.map(({ object }) => object.metadata.namespace ?? '')))
        if (namespace.startsWith(tenantNamespacePrefix))
          for (const object of await cluster.list({ kind: kinds.secret, namespace, labels }))
            found.push({ kind: kinds.secret, object });
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

  /** The right by a new RoleBinding counts a moment after that has been stored. */
  async function untilSecretsAreAllowed(namespace: string): Promise<void> {
    if (settings.secretsRole === undefined) return;
    let refused: unknown;
    const isAllowed = await pollUntil(async () => {
      try {
        await cluster.list({ kind: kinds.secret, namespace, labels: { ...managedLabels, 'app-id': 'none' } });
        return true;
      } catch (error) {
        refused = error;
        return false;
      }
    }, authorizationSeconds);
    if (!isAllowed) throw refused;
  }

  async function applyPullSecret(tenantId: TenantId): Promise<void> {
    if (settings.pullSecret === undefined) return;
    const { secret, host } = settings.pullSecret;
    await cluster.apply(planPullSecret(tenantId, host, await readRegistryCredentials(cluster, secret, host)));
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
