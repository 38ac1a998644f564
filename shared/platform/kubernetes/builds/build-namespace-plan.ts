import { buildNamespace } from '#shared/names.ts';
import type { ClusterObject } from '../cluster/cluster.ts';
import { dnsEgress, internetEgress, podsOfNamespace } from '../network-rules.ts';

/** What the operator decides about the namespace of builds. */
export interface BuildNamespaceSettings {
  /** Whose pods builds reach, for their source and to report their end: those of the Gateway, and the platform's own. */
  reachedNamespaces: readonly string[];
  /** Private networks that builds may reach, as '10.1.0.0/16': a registry may be in one. */
  allowedNetworks: readonly string[];
  /** Whether Dockerfiles are built: BuildKit needs profiles that the level `baseline` refuses. */
  dockerfiles: boolean;
}

/** Not those that drift is found by: what others change here is put back at the next start. */
const labels = { 'app.kubernetes.io/part-of': 'paas' };

/** Pods of builds that have ended stay until their end is recorded. */
const mostPods = 200;

export const podSecurityLabel = 'pod-security.kubernetes.io/enforce';

/** The namespace of builds: of the chart, or of whoever tries the platform without it. */
export function planBuildNamespace({ dockerfiles }: Pick<BuildNamespaceSettings, 'dockerfiles'>): ClusterObject {
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: buildNamespace, labels: { ...labels, [podSecurityLabel]: dockerfiles ? 'privileged' : 'baseline' } },
  };
}

/** What limits the pods in it: nothing reaches them, and they reach the internet and the platform. */
export function planBuildLimits({ reachedNamespaces, allowedNetworks }: BuildNamespaceSettings): ClusterObject[] {
  const metadata = (name: string) => ({ name, namespace: buildNamespace, labels });
  const policy = (name: string, spec: object): ClusterObject => ({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: metadata(name),
    spec: { podSelector: {}, ...spec },
  });
  return [
    policy('default-deny', { policyTypes: ['Ingress', 'Egress'] }),
    policy('allow-dns', { policyTypes: ['Egress'], egress: dnsEgress }),
    policy('allow-internet', { policyTypes: ['Egress'], egress: internetEgress(allowedNetworks) }),
    policy('allow-platform', { policyTypes: ['Egress'], egress: [{ to: reachedNamespaces.map(podsOfNamespace) }] }),
    {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: metadata('builds'),
      spec: { hard: { pods: String(mostPods), services: '0' } },
    },
    {
      apiVersion: 'v1',
      kind: 'LimitRange',
      metadata: metadata('builds'),
      // Tekton's own containers say nothing.
      spec: { limits: [{ type: 'Container', defaultRequest: { cpu: '10m', memory: '32Mi' }, default: { memory: '1Gi' } }] },
    },
  ];
}
