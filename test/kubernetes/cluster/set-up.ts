import type { TestProject } from 'vitest/node';
import { buildClusterPrograms, type ClusterPrograms } from './build-programs.ts';
import { startTestCluster } from './start-test-cluster.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Of the cluster that all files of a run share; each uses tenants of its own. */
    kubeconfig: string;
    /** For files that start a cluster of their own. */
    clusterPrograms: ClusterPrograms;
  }
}

/** Once a run: builds what is not built yet, and starts one cluster with all controllers for all test files. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const programs = await buildClusterPrograms((line) => process.stderr.write(`${line}\n`));
  const cluster = await startTestCluster(programs);
  project.provide('kubeconfig', cluster.kubeconfig);
  project.provide('clusterPrograms', programs);
  return () => cluster.stop();
}
