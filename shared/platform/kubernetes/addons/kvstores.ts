import { createHash } from 'node:crypto';
import { AppError } from '#shared/errors.ts';
import { authSecretName, kvstoreName } from '#shared/names.ts';
import type { AddonFacts } from '#shared/platform/addons.ts';
import type { Cluster, ClusterObject } from '../cluster/cluster.ts';
import { kinds } from '../cluster/kinds.ts';
import { addonLabels, appLabels, bindingSecretName, tenantNamespace } from '../names.ts';
import type { AddonKind } from './addon-kind.ts';
import { checkPasswordKey, configSecretName, kvstoreCredentials, planBindingSecret, planKvstore } from './kvstore-plan.ts';

/** On the Deployment of a store that accepts no connections. */
const stoppedAnnotation = 'paas/stopped';

/** A Deployment of valkey for each app's key-value store, without a volume. */
export function createKvstores(cluster: Cluster, image: string): AddonKind {
  return {
    findProblem: async () => undefined,
    async ensure(spec) {
      const name = kvstoreName(spec.tenantId, spec.appId);
      const namespace = tenantNamespace(spec.tenantId);
      const { deployment } = planKvstore(spec, image, '');
      if ((await cluster.create(deployment)) === 'existed') {
        // Anything else in it would replace the pods, and with them the data.
        const change = { metadata: { annotations: { [stoppedAnnotation]: null } }, spec: { replicas: spec.replicas } };
        await cluster.patch({ kind: kinds.deployment, ...placeOf(deployment) }, change);
      }
      const checkPassword = await readCheckPassword(deployment);
      for (const object of planKvstore(spec, image, checkPassword).surroundings) await cluster.apply(object);
      const auth = await cluster.read({ kind: kinds.secret, name: authSecretName(name), namespace });
      const uri = auth?.data?.['uri'];
      // Copied, not built again (SPEC.md §2). Deleted in this moment: the next attempt makes it.
      if (uri !== undefined) await cluster.apply(planBindingSecret(spec, { KVSTORE_URL: uri }));
      return kvstoreCredentials(spec);
    },
    async stop(appId) {
      const [deployment] = await find(appId);
      if (deployment === undefined || isStopped(deployment)) return false;
      const place = placeOf(deployment);
      // Without its policy nothing reaches the store: the namespace denies by default. Its data is in its memory.
      await cluster.delete({ kind: kinds.networkPolicy, ...place });
      await cluster.patch({ kind: kinds.deployment, ...place }, { metadata: { annotations: { [stoppedAnnotation]: 'true' } } });
      return true;
    },
    async delete(appId) {
      const labels = { ...appLabels(appId), ...addonLabels('kvstore') };
      const deployments = await find(appId);
      const results = await Promise.all(
        deployments.map(async (deployment) => {
          const { name, namespace } = placeOf(deployment);
          for (const kind of [kinds.networkPolicy, kinds.service, kinds.secret])
            for (const { metadata } of await cluster.list({ kind, namespace, labels }))
              await cluster.delete({ kind, name: metadata.name, namespace });
          await cluster.delete({ kind: kinds.secret, name: bindingSecretName(appId, 'kvstore'), namespace });
          return cluster.delete({ kind: kinds.deployment, name, namespace });
        }),
      );
      return results.includes(true);
    },
    async read(appId) {
      const [deployment] = await find(appId);
      if (deployment === undefined || deployment.metadata.deletionTimestamp !== undefined) return undefined;
      return isStopped(deployment) ? { ready: 0, desired: 0 } : factsOf(deployment);
    },
  };

  /**
   * The password by which the pods check themselves must never change while they run. It follows from the Deployment, so that the Secret
   * with it may be deleted; the user with it may do nothing that harms.
   */
  async function readCheckPassword(deployment: ClusterObject): Promise<string> {
    const { name, namespace } = placeOf(deployment);
    const config = await cluster.read({ kind: kinds.secret, name: configSecretName(name), namespace });
    const known = config?.data?.[checkPasswordKey];
    if (known !== undefined) return Buffer.from(known, 'base64').toString();
    const { uid } = (await cluster.read({ kind: kinds.deployment, name, namespace }))?.metadata ?? {};
    if (uid === undefined) throw new AppError('internal', `The Deployment ${name} was deleted while it was created. Try again.`);
    return createHash('sha256').update(`check ${uid}`).digest('hex').slice(0, 32);
  }

  function find(appId: Parameters<AddonKind['read']>[0]): Promise<readonly ClusterObject[]> {
    return cluster.list({ kind: kinds.deployment, labels: { ...appLabels(appId), ...addonLabels('kvstore') } });
  }
}

/** Of the newest state that the controller has seen; before that nothing is ready. */
function factsOf({ metadata, spec, status }: ClusterObject): AddonFacts {
  const { replicas: desired = 1 } = spec as { replicas?: number };
  const { readyReplicas: ready = 0, observedGeneration = 0 } = (status ?? {}) as {
    readyReplicas?: number;
    observedGeneration?: number;
  };
  return {
    ready: observedGeneration < (metadata.generation ?? 0) ? Math.min(ready, desired - 1) : Math.min(ready, desired),
    desired,
  };
}

const isStopped = ({ metadata: { annotations } }: ClusterObject): boolean => annotations?.[stoppedAnnotation] === 'true';

const placeOf = ({ metadata: { name, namespace = '' } }: ClusterObject) => ({ name, namespace });
