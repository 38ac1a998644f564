/** The pod that Tekton makes of a task, as far as the API server and its admission look at it. */

type Fields = Readonly<Record<string, unknown>>;

/** A step of a task. */
export interface TaskStep {
  name: string;
  image: string;
  env?: readonly { name: string; value?: string }[];
  timeout?: string;
  onError?: string;
  command?: readonly string[];
  script?: string;
  args?: readonly string[];
  securityContext?: Fields;
  computeResources?: Fields;
  workspaces?: readonly { name: string; mountPath?: string }[];
  volumeMounts?: readonly { name: string; mountPath: string; readOnly?: boolean }[];
}

/** A task. */
export interface TaskSpec {
  steps: readonly TaskStep[];
  volumes?: readonly Fields[];
  workspaces?: readonly { name: string; mountPath?: string }[];
}

/** Of Tekton's own init containers, when it sets any. */
const closed = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  runAsNonRoot: true,
  seccompProfile: { type: 'RuntimeDefault' },
};

/**
 * @param bindings of the PipelineRun's workspaces
 * @param closes whether Tekton's own containers get a security context
 */
export function podSpecOf(task: TaskSpec, bindings: readonly Fields[], podTemplate: Fields, closes: boolean): Fields {
  const workspaces = task.workspaces ?? [];
  const isolated = new Set(task.steps.flatMap((step) => (step.workspaces ?? []).map(({ name }) => name)));
  const volumes = workspaces.flatMap(({ name }) => {
    const { name: _, ...source } = bindings.find((binding) => binding['name'] === name) ?? {};
    return Object.keys(source).length === 0 ? [] : [{ name: `ws-${name}`, ...source }];
  });
  const own = closes ? { securityContext: closed } : {};
  return {
    ...podTemplate,
    restartPolicy: 'Never',
    initContainers: ['prepare', 'place-scripts'].map((name) => ({ name, image: 'tekton.invalid/entrypoint', ...own })),
    containers: task.steps.map((step) => {
      const mounted = workspaces.filter(
        ({ name }) => !isolated.has(name) || step.workspaces?.some((workspace) => workspace.name === name) === true,
      );
      return {
        name: `step-${step.name}`,
        image: step.image,
        command: ['/tekton/bin/entrypoint'],
        env: step.env ?? [],
        ...(step.securityContext === undefined ? {} : { securityContext: step.securityContext }),
        ...(step.computeResources === undefined ? {} : { resources: step.computeResources }),
        volumeMounts: [
          ...(step.volumeMounts ?? []),
          ...mounted.map(({ name, mountPath }) => ({ name: `ws-${name}`, mountPath: mountPath ?? `/workspace/${name}` })),
        ],
      };
    }),
    volumes: [...volumes, ...(task.volumes ?? [])],
  };
}
