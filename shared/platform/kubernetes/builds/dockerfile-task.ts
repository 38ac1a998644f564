import type { BuildSettings, DockerfileSettings } from './build-settings.ts';
import type { DockerfileFacts } from './source-facts.ts';
import {
  emptyVolume,
  exitCodes,
  places,
  planFetchStep,
  planResultStep,
  planTaskWorkspaces,
  planWorkingStep,
  results,
  smallStep,
  stateMount,
  type TaskTarget,
  useWorkspace,
  variablesMount,
} from './task-parts.ts';

const imageMount = { name: 'image', mountPath: '/image' };
const buildkitUser = 1000;

// A cache is exported to a folder of its own: BuildKit removes nothing from one that it adds to.
const buildScript = `#!/bin/sh
set -eu
set --
for name in $BUILD_ARGUMENTS; do
  file=${places.platform}/env/$name
  if [ -f "$file" ]; then set -- "$@" --opt "build-arg:$name=$(cat "$file")"; fi
done
old=${places.cache}/buildkit
new=${places.cache}/buildkit.new
rm -rf "$new"
if [ -f "$old/index.json" ]; then set -- "$@" --import-cache "type=local,src=$old"; fi
buildctl-daemonless.sh build --progress=plain --frontend dockerfile.v0 \\
  --local context=${places.source} --local dockerfile=${places.source} --opt "filename=$DOCKERFILE" \\
  --export-cache "type=local,dest=$new,mode=max" --output type=oci,tar=false,dest=${imageMount.mountPath} "$@"
rm -rf "$old"
mv "$new" "$old"
`;

// What runs here has the credentials, and reads what instructions of the Dockerfile may have shaped: no link leads out of it.
const pushScript = `#!/busybox/sh
set -eu
if [ -n "$(find ${imageMount.mountPath} ! -type f ! -type d)" ]; then
  echo 'The image has files that are neither files nor directories.'
  exit ${exitCodes.imageBroken}
fi
/ko-app/crane push $REGISTRY_OPTIONS --image-refs ${places.state}/references ${imageMount.mountPath} "$IMAGE"
`;

/**
 * An image from the app's Dockerfile: rootless BuildKit writes it to a folder of the pod, and a step that has the credentials of
 * the registry, in which nothing of the app runs, pushes it.
 */
export function planDockerfileTask(
  target: TaskTarget,
  dockerfile: DockerfileFacts,
  { buildkitImage, craneImage }: DockerfileSettings,
  settings: BuildSettings,
): object {
  const { registrySecret, insecureRegistry, toolsImage } = settings;
  const credentials = registrySecret === undefined ? [] : [useWorkspace('registry')];
  return {
    workspaces: planTaskWorkspaces(settings),
    results,
    volumes: [
      emptyVolume('image'),
      emptyVolume('state'),
      emptyVolume('buildkit'),
      { name: 'variables', secret: { secretName: target.variables } },
    ],
    steps: [
      planFetchStep(toolsImage, target.sourceUrl),
      {
        name: 'build',
        image: buildkitImage,
        script: buildScript,
        env: [
          { name: 'BUILD_ARGUMENTS', value: dockerfile.arguments.join(' ') },
          { name: 'DOCKERFILE', value: dockerfile.path },
          // A pod has no /proc of its own that another process namespace could be shown.
          { name: 'BUILDKITD_FLAGS', value: '--oci-worker-no-process-sandbox' },
        ],
        workspaces: [useWorkspace('source'), useWorkspace('cache')],
        volumeMounts: [imageMount, { name: 'buildkit', mountPath: '/home/user/.local/share/buildkit' }, variablesMount],
        // Rootless BuildKit makes user namespaces, for which newuidmap needs its file capabilities.
        securityContext: {
          runAsUser: buildkitUser,
          runAsGroup: buildkitUser,
          allowPrivilegeEscalation: true,
          seccompProfile: { type: 'Unconfined' },
          appArmorProfile: { type: 'Unconfined' },
        },
        ...planWorkingStep(target, settings),
      },
      {
        name: 'push',
        image: craneImage,
        script: pushScript,
        env: [
          { name: 'IMAGE', value: target.image },
          { name: 'REGISTRY_OPTIONS', value: insecureRegistry ? '--insecure' : '' },
          ...credentials.map(() => ({ name: 'DOCKER_CONFIG', value: places.registry })),
        ],
        workspaces: credentials,
        volumeMounts: [{ ...imageMount, readOnly: true }, stateMount],
        ...smallStep,
      },
      planResultStep(toolsImage, target.repository, { file: 'references', pattern: '^.*@\\(sha256:[0-9a-f]*\\)$' }),
    ],
  };
}
