import { buildCacheName, buildNamespace } from '#shared/names.ts';
import { chooseBuildArguments } from '#shared/platform/build-arguments.ts';
import type { BuildAddress, BuildSpec } from '#shared/platform/builds.ts';
import type { ClusterObject } from '../cluster/cluster.ts';
import { appRepository } from '../images/image-address.ts';
import { planSecret } from '../secret-plan.ts';
import { annotations, buildLabels, buildRunName, buildTask, buildVariablesName } from './build-names.ts';
import type { BuildSettings } from './build-settings.ts';
import { planDockerfileTask } from './dockerfile-task.ts';
import { planLifecycleTask } from './lifecycle-task.ts';
import type { SourceFacts } from './source-facts.ts';
import { buildUser, places, smallStep, type TaskTarget, useWorkspace } from './task-parts.ts';

/** How long a pod may wait for a node, a volume and its images: it does not count as time of the build. */
export const startSeconds = 3600;
const reportSeconds = 120;

/** The facts of a build that its objects are made of. */
export interface BuildPlan extends Pick<BuildSpec, 'buildId' | 'appId' | 'timeoutSeconds'> {
  sourceUrl: string;
  callbackUrl: string;
  facts: SourceFacts;
}

/**
 * The PipelineRun. It is created as pending, and started when the Secrets are there that it owns: a pod that waits for a Secret
 * tries again minutes later.
 */
export function planBuildRun(plan: BuildPlan, settings: BuildSettings): ClusterObject {
  const { buildId, appId, timeoutSeconds, facts } = plan;
  const repository = appRepository(settings.repository, appId, facts.dockerfile === undefined ? 'buildpacks' : 'dockerfile');
  const target: TaskTarget = {
    sourceUrl: plan.sourceUrl,
    repository,
    image: `${repository}:${buildId}`,
    variables: buildVariablesName(buildId),
    timeoutSeconds,
  };
  const taskSpec =
    facts.dockerfile === undefined || settings.dockerfiles === undefined
      ? planLifecycleTask(target, settings)
      : planDockerfileTask(target, facts.dockerfile, settings.dockerfiles, settings);
  const names = ['source', 'cache', 'tokens', ...(settings.registrySecret === undefined ? [] : ['registry'])];
  const tasksSeconds = timeoutSeconds + startSeconds;
  return {
    ...planRun(plan, facts.procfile === undefined ? {} : { [annotations.procfile]: JSON.stringify(facts.procfile) }),
    spec: {
      status: 'PipelineRunPending',
      timeouts: {
        pipeline: `${tasksSeconds + reportSeconds}s`,
        tasks: `${tasksSeconds}s`,
        finally: `${reportSeconds}s`,
      },
      taskRunTemplate: { podTemplate: planPodTemplate(settings) },
      workspaces: [
        { name: 'source', emptyDir: {} },
        { name: 'cache', persistentVolumeClaim: { claimName: buildCacheName(appId) } },
        { name: 'tokens', secret: { secretName: buildRunName(buildId) } },
        ...(settings.registrySecret === undefined
          ? []
          : [
              {
                name: 'registry',
                secret: { secretName: settings.registrySecret, items: [{ key: '.dockerconfigjson', path: 'config.json' }] },
              },
            ]),
      ],
      pipelineSpec: {
        workspaces: names.map((name) => ({ name })),
        tasks: [
          {
            name: buildTask,
            timeout: `${tasksSeconds}s`,
            workspaces: names.map((name) => ({ name, workspace: name })),
            taskSpec,
          },
        ],
        finally: [planReportTask(plan.callbackUrl, settings)],
      },
    },
  };
}

/** The PipelineRun of a build that was refused before anything ran: it never starts, and says why. */
export function planRefusedRun(
  { buildId, appId, timeoutSeconds }: Pick<BuildSpec, 'buildId' | 'appId' | 'timeoutSeconds'>,
  cause: string,
): ClusterObject {
  return {
    ...planRun({ buildId, appId, timeoutSeconds }, { [annotations.refused]: cause }),
    // Tekton's own check wants a task.
    spec: {
      status: 'PipelineRunPending',
      pipelineSpec: { tasks: [{ name: buildTask, taskSpec: { steps: [{ name: 'refused', image: 'refused.invalid/none' }] } }] },
    },
  };
}

/** The Secrets of a build, which end with its PipelineRun: two tokens, and the app's variables. */
export function planBuildSecrets(
  spec: Pick<BuildSpec, 'buildId' | 'appId' | 'env' | 'commit'>,
  facts: SourceFacts,
  addresses: { source: BuildAddress; callback: BuildAddress },
  uid: string,
): ClusterObject[] {
  const { buildId, appId } = spec;
  const owner = { apiVersion: 'tekton.dev/v1', kind: 'PipelineRun', name: buildRunName(buildId), uid };
  const secret = (name: string, values: Readonly<Record<string, string>>): ClusterObject =>
    planSecret({ name, namespace: buildNamespace, labels: buildLabels(appId, buildId), ownerReferences: [owner] }, values);
  const variables = { ...spec.env, ...(spec.commit === undefined ? {} : { SOURCE_VERSION: spec.commit }) };
  const header = ({ token }: BuildAddress): string => `Authorization: Bearer ${token}`;
  return [
    secret(buildRunName(buildId), { source: header(addresses.source), callback: header(addresses.callback) }),
    // A Dockerfile gets what it asks for, and nothing that changes the programs that build it.
    secret(
      buildVariablesName(buildId),
      facts.dockerfile === undefined ? variables : pickArguments(facts.dockerfile.arguments, variables),
    ),
  ];
}

function pickArguments(names: readonly string[], variables: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return chooseBuildArguments(names.map((name) => `ARG ${name}`).join('\n'), variables);
}

function planRun(
  { buildId, appId, timeoutSeconds }: Pick<BuildSpec, 'buildId' | 'appId' | 'timeoutSeconds'>,
  more: Readonly<Record<string, string>>,
): Omit<ClusterObject, 'spec'> {
  return {
    apiVersion: 'tekton.dev/v1',
    kind: 'PipelineRun',
    metadata: {
      name: buildRunName(buildId),
      namespace: buildNamespace,
      labels: buildLabels(appId, buildId),
      annotations: { [annotations.timeout]: String(timeoutSeconds), ...more },
    },
  };
}

function planPodTemplate({ runtimeClass }: BuildSettings): object {
  return {
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    ...(runtimeClass === undefined ? {} : { runtimeClassName: runtimeClass }),
    securityContext: {
      runAsNonRoot: true,
      runAsUser: buildUser.uid,
      runAsGroup: buildUser.gid,
      fsGroup: buildUser.gid,
      fsGroupChangePolicy: 'OnRootMismatch',
      seccompProfile: { type: 'RuntimeDefault' },
    },
  };
}

const reportScript = `#!/bin/sh
status=failed
if [ "$BUILD_STATUS" = Succeeded ]; then status=succeeded; fi
curl --silent --show-error --retry 5 --retry-connrefused --connect-timeout 10 --max-time 60 --output /dev/null \\
  --header @${places.tokens}/callback --header 'Content-Type: application/json' --data "{\\"status\\":\\"$status\\"}" "$CALLBACK_URL"
`;

/** Tells the control plane that the build has ended. A hint: the build is what it is whether this arrives or not. */
function planReportTask(callbackUrl: string, { toolsImage }: BuildSettings): object {
  return {
    name: 'report',
    workspaces: [{ name: 'tokens', workspace: 'tokens' }],
    params: [{ name: 'status', value: `$(tasks.${buildTask}.status)` }],
    taskSpec: {
      params: [{ name: 'status', type: 'string' }],
      workspaces: [useWorkspace('tokens')],
      steps: [
        {
          name: 'report',
          image: toolsImage,
          script: reportScript,
          onError: 'continue',
          env: [
            { name: 'BUILD_STATUS', value: '$(params.status)' },
            { name: 'CALLBACK_URL', value: callbackUrl },
          ],
          ...smallStep,
        },
      ],
    },
  };
}
