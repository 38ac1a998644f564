import { AppError } from '#shared/errors.ts';
import { buildNamespace } from '#shared/names.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { kinds } from '../cluster/kinds.ts';
import { type BuildNamespaceSettings, planBuildLimits, planBuildNamespace, podSecurityLabel } from './build-namespace-plan.ts';

/**
 * Limits what builds may do and reach. The namespace is the chart's; where there is none it is created. What somebody has decided about
 * its pod security stays.
 * @throws AppError in one sentence when the cluster refuses it, or its pod security refuses what the settings allow
 */
export async function prepareBuildNamespace(
  cluster: Pick<Cluster, 'read' | 'create' | 'apply'>,
  settings: BuildNamespaceSettings,
): Promise<void> {
  const planned = planBuildNamespace(settings);
  const reference = { kind: kinds.namespace, name: buildNamespace };
  let found = await cluster.read(reference);
  if (found === undefined) {
    await cluster.create(planned);
    found = planned;
  }
  const level = found.metadata.labels?.[podSecurityLabel] ?? 'privileged';
  if (settings.dockerfiles && level !== 'privileged')
    throw new AppError(
      'internal',
      `The namespace ${buildNamespace} has the pod security level ${level}, which refuses builds of Dockerfiles. Run \`kubectl label namespace ${buildNamespace} ${podSecurityLabel}=privileged --overwrite\`, or set PAAS_KUBERNETES_DOCKERFILES=false.`,
    );
  for (const object of planBuildLimits(settings)) await cluster.apply(object);
}
