import type { BuildSettings } from './build-settings.ts';
import {
  buildUser,
  emptyVolume,
  layersMount,
  places,
  planFetchStep,
  planResultStep,
  planTaskWorkspaces,
  planWorkingStep,
  results,
  type Step,
  smallStep,
  stateMount,
  type TaskTarget,
  useWorkspace,
  variablesMount,
} from './task-parts.ts';

const platformApi = '0.13';

/**
 * The phases of the Cloud Native Buildpacks lifecycle, each in a step of its own. The cache is mounted where it is restored and
 * saved; the credentials of the registry where no buildpack runs; what decides which image is pushed upon which base
 * (`analyzed.toml`, `group.toml`) in a volume that the app's own build can only read.
 */
export function planLifecycleTask(target: TaskTarget, settings: BuildSettings): object {
  const { builderImage, insecureRegistry, repository } = settings;
  const host = repository.split('/')[0] ?? '';
  const user = [`-uid=${buildUser.uid}`, `-gid=${buildUser.gid}`];
  const registry = insecureRegistry ? [`-insecure-registry=${host}`] : [];
  const runImage = settings.runImage === undefined ? [] : [`-run-image=${settings.runImage}`];
  const analyzed = `-analyzed=${places.state}/analyzed.toml`;
  const group = `-group=${places.state}/group.toml`;
  const plan = `-plan=${places.state}/plan.toml`;
  const [app, layers] = [`-app=${places.source}`, `-layers=${places.layers}`];
  const platform = `-platform=${places.platform}`;
  const cache = `-cache-dir=${places.cache}`;

  // Buildpacks run in none of the steps that have the credentials.
  const credentials = settings.registrySecret === undefined ? [] : [useWorkspace('registry')];
  const dockerConfig = credentials.map(() => ({ name: 'DOCKER_CONFIG', value: places.registry }));
  const phase = (name: string, program: string, args: readonly string[], rest: object): Step => ({
    name,
    image: builderImage,
    command: [`/cnb/lifecycle/${program}`],
    args: ['-no-color', ...args],
    env: [{ name: 'CNB_PLATFORM_API', value: platformApi }],
    ...smallStep,
    ...rest,
  });
  const withRegistry = (step: Step, ...workspaces: readonly object[]): Step => ({
    ...step,
    env: [...(step['env'] as object[]), ...dockerConfig],
    workspaces: [...workspaces, ...credentials],
    volumeMounts: [layersMount, stateMount],
  });
  return {
    workspaces: planTaskWorkspaces(settings),
    results,
    volumes: [emptyVolume('layers'), emptyVolume('state'), { name: 'variables', secret: { secretName: target.variables } }],
    steps: [
      planFetchStep(settings.toolsImage, target.sourceUrl),
      withRegistry(phase('analyze', 'analyzer', [layers, analyzed, ...user, ...registry, ...runImage, target.image], {})),
      phase('detect', 'detector', [app, layers, analyzed, group, plan, platform], {
        workspaces: [useWorkspace('source')],
        volumeMounts: [layersMount, stateMount, variablesMount],
      }),
      withRegistry(
        phase('restore', 'restorer', [layers, analyzed, group, cache, ...user, ...registry], {}),
        useWorkspace('cache'),
      ),
      phase('build', 'builder', [app, layers, analyzed, group, plan, platform], {
        workspaces: [useWorkspace('source')],
        volumeMounts: [layersMount, { ...stateMount, readOnly: true }, variablesMount],
        ...planWorkingStep(target, settings),
      }),
      withRegistry(
        phase(
          'export',
          'exporter',
          [app, layers, analyzed, group, cache, `-report=${places.state}/report.toml`, ...user, ...registry, target.image],
          {},
        ),
        useWorkspace('source'),
        useWorkspace('cache'),
      ),
      planResultStep(settings.toolsImage, target.repository, {
        file: 'report.toml',
        pattern: '^ *digest *= *"\\(sha256:[0-9a-f]*\\)".*',
      }),
    ],
  };
}
