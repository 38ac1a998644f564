/**
 * The short form of the tests on Kubernetes: one whole push, from git to the answer of a pod. It is left out, with a line that says so, where
 * Go is missing, and where the programs of the cluster are not built yet: that takes ten minutes. `--build` builds them.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { buildClusterPrograms, findClusterPrograms } from './cluster/build-programs.ts';

const reasons = {
  go: 'Go 1.26 is not in the PATH',
  programs:
    'the programs of its cluster are not built yet (`npm run test:kubernetes:short -- --build` does, in about ten minutes)',
};

const found = process.argv.includes('--build') ? await buildClusterPrograms(console.log) : await findClusterPrograms();
if (typeof found === 'string') {
  console.log(`The push on Kubernetes was left out: ${reasons[found]}.`);
} else {
  const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--config', 'vitest.kubernetes.config.ts'];
  const only = ['--project', 'kubernetes-end-to-end', '--testNamePattern', 'a push over SSH'];
  const child = spawn(process.execPath, [...vitest, ...only], { stdio: 'inherit' });
  const [code] = (await once(child, 'exit')) as [number | null];
  process.exitCode = code ?? 1;
}
