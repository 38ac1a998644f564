import type { TestProject } from 'vitest/node';
import { buildClusterPrograms, type ClusterPrograms } from './build-programs.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** For files that start a cluster of their own. */
    clusterPrograms: ClusterPrograms;
  }
}

/** Once a run: builds what is not built yet. */
export default async function setUp(project: TestProject): Promise<void> {
  project.provide('clusterPrograms', await buildClusterPrograms((line) => process.stderr.write(`${line}\n`)));
}
