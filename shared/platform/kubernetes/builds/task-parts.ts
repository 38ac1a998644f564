/** What the tasks of both pipelines share: their places in the pod, their first step and their last. */
import { limits } from '#shared/limits.ts';
import type { BuildSettings } from './build-settings.ts';

/** A step of a Task, as far as the driver sets it. */
export interface Step {
  name: string;
  image: string;
  [field: string]: unknown;
}

/** What a task builds. */
export interface TaskTarget {
  sourceUrl: string;
  /** The app's repository. */
  repository: string;
  /** `repository:tag`. */
  image: string;
  /** Name of the Secret with the app's variables. */
  variables: string;
  timeoutSeconds: number;
}

/** Where things are in the pod of a build. */
export const places = {
  source: '/workspace/source',
  cache: '/workspace/cache',
  layers: '/layers',
  /** What a step hands to the next ones and no code of the app may change: what is pushed, and upon which base. */
  state: '/state',
  /** Of the platform, as buildpacks know it: `env/<NAME>` has a variable of the app. */
  platform: '/platform',
  tokens: '/secrets/tokens',
  registry: '/secrets/registry',
} as const;

/** Of the pods: what namespaces of pod security level `restricted` ask for, and what images of buildpacks expect. */
export const buildUser = { uid: 1001, gid: 1000 } as const;

export const closedContainer = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } };

/** Exit codes of the platform's own scripts. */
export const exitCodes = {
  /** The token was used before: the pod is a second one. */
  sourceGone: 41,
  sourceUnavailable: 42,
  sourceBroken: 43,
  imageBroken: 44,
} as const;

/** Requests are those of the pod as a whole, so only the largest step has some that count. */
export const smallStep = {
  computeResources: { requests: { cpu: '10m', memory: '32Mi' }, limits: { memory: '1Gi' } },
  securityContext: closedContainer,
};

export const stateMount = { name: 'state', mountPath: places.state };
export const layersMount = { name: 'layers', mountPath: places.layers };
export const variablesMount = { name: 'variables', mountPath: `${places.platform}/env`, readOnly: true };

/** Mounts a workspace in the steps that list it, and in no other. */
export const useWorkspace = (name: 'cache' | 'source' | 'tokens' | 'registry'): object => ({
  name,
  mountPath: places[name],
});

/** A volume of the pod's own, in which a build finds as much room as on one machine. */
export const emptyVolume = (name: string): object => ({
  name,
  emptyDir: { sizeLimit: `${limits.build.diskBytes / 1024 / 1024}Mi` },
});

// The token is in no argument: curl reads the header from the file.
const fetchScript = `#!/bin/sh
set -u
status=$(curl --silent --show-error --retry 5 --retry-connrefused --retry-delay 2 --connect-timeout 20 --max-time 1800 \\
  --header @${places.tokens}/source --output ${places.state}/source.tar --write-out '%{http_code}' "$SOURCE_URL") || exit ${exitCodes.sourceUnavailable}
case "$status" in
  200) ;;
  401) exit ${exitCodes.sourceGone} ;;
  *) echo "$SOURCE_URL answered with status $status."; exit ${exitCodes.sourceUnavailable} ;;
esac
tar -x -f ${places.state}/source.tar -C ${places.source} || exit ${exitCodes.sourceBroken}
rm ${places.state}/source.tar
`;

/** The first step: the source, by its one-time address. */
export function planFetchStep(image: string, sourceUrl: string): Step {
  return {
    name: 'fetch',
    image,
    script: fetchScript,
    env: [{ name: 'SOURCE_URL', value: sourceUrl }],
    workspaces: [useWorkspace('source'), useWorkspace('tokens')],
    volumeMounts: [stateMount],
    ...smallStep,
  };
}

/**
 * The last step: the results.
 * @param file in `places.state`, which names the digest
 * @param pattern of sed, whose first group is the digest
 */
export function planResultStep(image: string, target: string, { file, pattern }: { file: string; pattern: string }): Step {
  return {
    name: 'result',
    image,
    script: `#!/bin/sh
set -eu
digest=$(sed -n 's/${pattern}/\\1/p' ${places.state}/${file} | head -n 1)
test -n "$digest"
printf %s "$IMAGE" > $(results.IMAGE_URL.path)
printf %s "$digest" > $(results.IMAGE_DIGEST.path)
`,
    env: [{ name: 'IMAGE', value: target }],
    volumeMounts: [{ ...stateMount, readOnly: true }],
    ...smallStep,
  };
}

/** The workspaces of a task; each step sees those that it lists. */
export function planTaskWorkspaces({ registrySecret }: Pick<BuildSettings, 'registrySecret'>): object[] {
  const registry = registrySecret === undefined ? [] : [useWorkspace('registry')];
  return [useWorkspace('source'), useWorkspace('cache'), useWorkspace('tokens'), ...registry];
}

/** Of the step that runs the app's build: its time, and what the whole pod requests. */
export function planWorkingStep({ timeoutSeconds }: TaskTarget, { cpu, memory }: BuildSettings): object {
  return {
    timeout: `${timeoutSeconds}s`,
    computeResources: { requests: { cpu, memory }, limits: { memory } },
  };
}

export const results = [
  { name: 'IMAGE_URL', description: 'The repository of the image.' },
  { name: 'IMAGE_DIGEST', description: 'sha256:…' },
];
