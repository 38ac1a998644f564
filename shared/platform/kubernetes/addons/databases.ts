import { AppError } from '#shared/errors.ts';
import type { AppId } from '#shared/ids.ts';
import type { Cluster, ClusterObject } from '../cluster/cluster.ts';
import { kinds } from '../cluster/kinds.ts';
import { addonLabels, appLabels, bindingSecretName } from '../names.ts';
import type { AddonKind } from './addon-kind.ts';
import { type DatabaseSettings, databaseCredentials, planDatabase } from './database-plan.ts';
import { planBindingSecret } from './kvstore-plan.ts';

const hibernation = 'cnpg.io/hibernation';

/** A CloudNativePG Cluster for each app's database. */
export function createDatabases(cluster: Cluster, settings: DatabaseSettings): AddonKind {
  const kind: AddonKind = {
    async findProblem() {
      if (await cluster.serves(kinds.postgresCluster)) return undefined;
      return 'Databases need the operator CloudNativePG on the cluster. Install it: helm install cnpg cloudnative-pg --repo https://cloudnative-pg.github.io/charts -n cnpg-system --create-namespace';
    },
    async ensure(spec) {
      const problem = await kind.findProblem();
      if (problem !== undefined) throw new AppError('internal', problem);
      for (const object of planDatabase(spec, settings)) await cluster.apply(object);
      const credentials = databaseCredentials(spec);
      const uri = Buffer.from(credentials.uri).toString('base64');
      await cluster.apply(planBindingSecret(spec, { DATABASE_URL: uri }));
      return credentials;
    },
    async stop(appId) {
      const [found] = await find(appId);
      if (found === undefined || isHibernated(found)) return false;
      await cluster.patch(
        { kind: kinds.postgresCluster, ...placeOf(found) },
        { metadata: { annotations: { [hibernation]: 'on' } } },
      );
      return true;
    },
    async delete(appId) {
      const labels = { ...appLabels(appId), ...addonLabels('database') };
      const results = await Promise.all(
        (await find(appId)).map(async (found) => {
          const { name, namespace } = placeOf(found);
          const deleted = await cluster.delete({ kind: kinds.postgresCluster, name, namespace });
          await cluster.delete({ kind: kinds.networkPolicy, name, namespace });
          for (const { metadata } of await cluster.list({ kind: kinds.secret, namespace, labels }))
            await cluster.delete({ kind: kinds.secret, name: metadata.name, namespace });
          await cluster.delete({ kind: kinds.secret, name: bindingSecretName(appId, 'database'), namespace });
          return deleted;
        }),
      );
      return results.includes(true);
    },
    async read(appId) {
      const [found] = await find(appId);
      if (found === undefined || found.metadata.deletionTimestamp !== undefined) return undefined;
      if (isHibernated(found)) return { ready: 0, desired: 0 };
      const { instances: desired } = found.spec as { instances: number };
      const { readyInstances = 0 } = (found.status ?? {}) as { readyInstances?: number };
      return { ready: Math.min(readyInstances, desired), desired };
    },
  };
  return kind;

  /** None where the operator is not installed: nothing can have been created. */
  async function find(appId: AppId): Promise<readonly ClusterObject[]> {
    if (!(await cluster.serves(kinds.postgresCluster))) return [];
    return cluster.list({ kind: kinds.postgresCluster, labels: { ...appLabels(appId), ...addonLabels('database') } });
  }
}

const isHibernated = ({ metadata: { annotations } }: ClusterObject): boolean => annotations?.[hibernation] === 'on';

const placeOf = ({ metadata: { name, namespace = '' } }: ClusterObject) => ({ name, namespace });
