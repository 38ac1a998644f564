import { KubeConfig } from '@kubernetes/client-node';
import { createApiRequests } from './api-requests.ts';
import { createApiServer } from './api-server.ts';
import type { Cluster } from './cluster.ts';

/** Where the cluster is and who the platform is there. */
export interface ClusterConnection {
  /** Path of a kubeconfig, whose current context is used. Undefined: the service account of the pod that the platform runs in. */
  kubeconfig: string | undefined;
}

/** The API server that a kubeconfig names, or that of the cluster the platform runs in. Nothing is asked yet. */
export function connectCluster({ kubeconfig }: ClusterConnection): Cluster {
  const config = new KubeConfig();
  if (kubeconfig === undefined) config.loadFromCluster();
  else config.loadFromFile(kubeconfig);
  return createApiServer(createApiRequests(config));
}
