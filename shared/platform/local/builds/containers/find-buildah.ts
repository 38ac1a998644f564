import { access } from 'node:fs/promises';
import { BuildFailure } from '#shared/platform/build-failure.ts';

/** Below /usr, which sandboxes show. */
const buildah = '/usr/bin/buildah';

/** Why this machine cannot build container images, and the command that changes that; undefined if it can. */
export async function findContainerProblem(isRoot = process.getuid?.() === 0): Promise<string | undefined> {
  if (!isRoot) return 'Container images need a platform that runs as root.';
  const found = await access(buildah).then(
    () => true,
    () => false,
  );
  return found ? undefined : 'buildah, which builds container images, is not installed. Install it: apt-get install -y buildah';
}

/** @throws BuildFailure if this machine cannot build container images */
export async function findBuildah(): Promise<void> {
  const problem = await findContainerProblem();
  if (problem !== undefined) throw new BuildFailure(`This app has a Dockerfile. ${problem}`);
}
