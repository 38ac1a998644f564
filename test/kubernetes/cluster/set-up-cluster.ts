import type { TestProject } from 'vitest/node';
import { buildClusterPrograms } from './build-programs.ts';
import { startTestCluster } from './start-test-cluster.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Of the cluster that all files of a run share; each uses tenants of its own. */
    kubeconfig: string;
  }
}

/** Once a run: starts one cluster with all controllers for all test files. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const cluster = await startTestCluster(await buildClusterPrograms((line) => process.stderr.write(`${line}\n`)));
  project.provide('kubeconfig', cluster.kubeconfig);
  return () => cluster.stop();
}
