import { chown, mkdir, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { parseJson } from '#shared/parse-json.ts';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import type { BuildOutput } from '#shared/platform/build-output.ts';
import type { ImageDescription, PlaceTree } from '../images/images.ts';
import type { StepRunner } from './build-steps.ts';
import { answers, type ContainerStep, planUnpack } from './containers/buildah.ts';
import { explainContainerFailure } from './containers/container-causes.ts';
import { type ImageConfig, readImageConfig } from './containers/image-config.ts';
import { type ImageRegistries, planContainersConfig } from './containers/registries-conf.ts';
import { placeByCopy } from './image-storing.ts';
import type { DeclaredProcesses } from './plans/paas-file.ts';
import { openSourceTree } from './plans/source-tree.ts';

/** The steps of a build that makes a container image. */
export interface ContainerBuild {
  /** Runs its steps as root of the app's user namespace. */
  readonly runner: StepRunner;
  /** The home directory of the build, on the host. */
  readonly home: string;
  /** What buildah sees, and cannot write, at `toolTargets.config`; on the host. */
  readonly config: string;
  readonly output: BuildOutput;
  readonly registries: ImageRegistries;
  /** Credentials of registries, as in a `~/.docker/config.json`. Secret. */
  readonly credentials: string | undefined;
  readonly longestBytes: number;
  /** Uid of the app. */
  readonly owner: number;
}

/** An image in the app's cache that is to be stored. */
export interface ContainerImage {
  readonly description: ImageDescription;
  readonly place: PlaceTree;
}

/**
 * Makes an image by a step of `buildah.ts`.
 * @param builder name of the builder in the result
 * @throws BuildFailure with what failed and how to fix it
 */
export async function makeContainerImage(
  build: ContainerBuild,
  step: ContainerStep,
  { builder, declared }: { builder: string; declared: DeclaredProcesses | undefined },
): Promise<ContainerImage> {
  await writeConfig(build);
  await run(build, step);
  const home = openSourceTree(build.home);
  const read = async (name: string): Promise<string> => (await home.readText(name)) ?? '';
  const config = readImageConfig(await read(answers.config), {
    passwd: await read(answers.users),
    group: await read(answers.groups),
  });
  for (const note of config.notes) build.output.detail(note);
  checkSize(await read(answers.sizes), build.longestBytes);
  const processes = chooseProcesses(build.output, config, declared);
  return {
    description: {
      builder,
      processes,
      ...(declared?.releaseCommand === undefined ? {} : { releaseCommand: declared.releaseCommand }),
      env: { ...config.env },
      path: [],
      toolchain: [],
      container: config.container,
    },
    place: unpackInto(build, config.container.workdir),
  };
}

async function writeConfig({ config, registries, credentials, owner }: ContainerBuild): Promise<void> {
  const files = { ...planContainersConfig(registries), 'auth.json': planCredentials(credentials ?? '{}') };
  await mkdir(config, { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    await writeFile(`${config}/${name}`, text, { mode: 0o600 });
    await chown(`${config}/${name}`, owner, owner);
  }
}

const credentialsSchema = z.object({ auths: z.record(z.string(), z.object({ auth: z.string().optional() })).default({}) });

/**
 * Credentials alone: a helper would be a program that runs with the rights of buildah.
 * @param text content of a ~/.docker/config.json
 * @returns the same with nothing but its credentials
 * @throws BuildFailure for anything else, and where it has none but those of helpers
 */
export function planCredentials(text: string): string {
  const content = parseJson(text);
  if (content === undefined)
    throw new BuildFailure(`The config variable DOCKER_AUTH_CONFIG is not valid JSON. ${credentialsHint}`);
  const parsed = credentialsSchema.safeParse(content);
  if (!parsed.success) throw new BuildFailure(`The config variable DOCKER_AUTH_CONFIG is not supported. ${credentialsHint}`);
  const auths = Object.entries(parsed.data.auths).filter(([, { auth }]) => auth !== undefined);
  const { credHelpers, credsStore } = content as Readonly<Record<string, unknown>>;
  if (auths.length === 0 && (credHelpers ?? credsStore) !== undefined)
    throw new BuildFailure(`The config variable DOCKER_AUTH_CONFIG names programs that know the credentials. ${credentialsHint}`);
  return JSON.stringify({ auths: Object.fromEntries(auths) });
}

const credentialsHint = 'It must be the content of a ~/.docker/config.json, with "auth" for each registry in "auths".';

async function run({ runner, output }: ContainerBuild, step: ContainerStep): Promise<void> {
  try {
    await runner.runStep(step);
  } catch (error) {
    const cause =
      error instanceof BuildFailure && / exited with code \d+\.$/.test(error.message)
        ? explainContainerFailure(output.tail())
        : undefined;
    throw cause === undefined ? error : new BuildFailure(cause);
  }
}

/** Declared types win over what the image runs by itself. */
function chooseProcesses(
  output: BuildOutput,
  config: ImageConfig,
  declared: DeclaredProcesses | undefined,
): Record<string, string> {
  output.step('Discovering process types');
  const types = Object.keys(declared?.processes ?? {}).join(', ');
  if (declared !== undefined && types !== '') output.detail(`${declared.from} declares types -> ${types}`);
  const own = config.command === undefined ? {} : { web: config.command };
  if (declared?.processes['web'] === undefined && config.command !== undefined)
    output.detail('ENTRYPOINT and CMD of the image -> web');
  const processes = { ...own, ...declared?.processes };
  if (Object.keys(processes).length === 0)
    throw new BuildFailure(
      'The image has neither ENTRYPOINT nor CMD. Add CMD to the Dockerfile, or a Procfile with a line as: web: ./server',
    );
  return processes;
}

/** @param sizes lines of `du`: bytes and path, the last one being the whole */
function checkSize(sizes: string, longestBytes: number): void {
  const entries = sizes.split('\n').flatMap((line) => {
    const [, bytes, path] = /^(\d+)\t(.*)$/.exec(line) ?? [];
    return bytes === undefined || path === undefined ? [] : [{ bytes: Number(bytes), path }];
  });
  const whole = entries.find(({ path }) => path === '')?.bytes ?? 0;
  if (whole <= longestBytes) return;
  const mebibytes = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MiB`;
  const largest = entries
    .filter(({ path }) => path.split('/').length >= 3)
    .sort((one, other) => other.bytes - one.bytes)
    .slice(0, 4)
    .map(({ bytes, path }) => `${path} ${mebibytes(bytes)}`);
  throw new BuildFailure(
    `The image has ${mebibytes(whole)}, and an image may have ${mebibytes(longestBytes)}. The largest directories: ${largest.join(', ')}. ` +
      'Use a smaller base image, or copy only what runs into the last stage.',
  );
}

/** As root of the app's user namespace. */
function unpackInto({ owner, runner }: ContainerBuild, workdir: string): PlaceTree {
  return placeByCopy(
    (directory) => chown(directory, owner, owner),
    (mount, to) => runner.runStep(planUnpack(to, workdir), mount),
  );
}
