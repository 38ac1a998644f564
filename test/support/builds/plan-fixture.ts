import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { chooseBuilders } from '#shared/platform/local/builds/builders/choose-builders.ts';
import type { BuildPlan } from '#shared/platform/local/builds/plans/build-plan.ts';
import type { BuildContext } from '#shared/platform/local/builds/plans/builder.ts';
import { findOwnCommands, readAppOverrides } from '#shared/platform/local/builds/plans/paas-file.ts';
import { openSourceTree, type SourceTree } from '#shared/platform/local/builds/plans/source-tree.ts';
import { readVersionPins } from '#shared/platform/local/builds/plans/version-pins.ts';
import type { Toolchains } from '#shared/platform/local/toolchains/toolchains.ts';

type Texts = Readonly<Record<string, string>>;

const toolchain = { version: '1.2.3', path: ['/opt/tool/bin'], mounts: [] };
/** Every version that is asked for. */
export const toolchains: Toolchains = {
  findNode: async (request) => ({ ...toolchain, version: request?.version ?? '1.2.3', headers: undefined }),
  findTool: async (name, { version }) => ({ version, path: [`/opt/tools/${name}`], mounts: [] }),
  findPython: async () => ({ ...toolchain, executable: '/opt/tool/bin/python3', pip: true }),
  findGo: async (request) => ({ ...toolchain, version: request?.version ?? '1.2.3' }),
  findLanguage: async (_, request) => ({ version: request?.version ?? '1.2.3', path: [], mounts: [] }),
  findRust: async () => toolchain,
  findJava: async (request) => ({ ...toolchain, version: request?.version ?? '17', home: '/opt/java' }),
  findSystem: async (packages, tools) => ({
    codename: 'bookworm',
    mounts: [...tools, { kind: 'stored', name: 'debian-system', version: `1.0.0+${packages.length}` }],
  }),
  findJavaTool: async () => ({ path: ['/opt/maven/bin'], mounts: [] }),
};

/** Of an app that says nothing of its own about its build. */
export const plainContext: BuildContext = {
  toolchains,
  env: {},
  cache: 'cold',
  pins: new Map(),
  ownCommands: [],
  buildsItself: false,
};

/** For the tests of a file: plans of sources in a temporary directory, which is removed after them. Nothing is run. */
export function openPlanFixture(): {
  openSource(files: Texts): Promise<SourceTree>;
  /** By the builder that starts the app. @param env the app's variables */
  planFor(files: Texts, env?: Texts): Promise<BuildPlan & { builder: string }>;
} {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'paas-plans-'));
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));
  const openSource = async (files: Texts): Promise<SourceTree> => {
    const root = await mkdtemp(join(directory, 'source-'));
    for (const [path, content] of Object.entries(files)) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), content);
    }
    return openSourceTree(root);
  };
  return {
    openSource,
    async planFor(files, env = {}) {
      const source = await openSource(files);
      const { builder } = (await chooseBuilders(source)).main;
      const overrides = await readAppOverrides(source, env);
      const pins = await readVersionPins(source, env, overrides);
      const buildsItself = (overrides.install ?? overrides.build) !== undefined;
      const context = { ...plainContext, env, pins, ownCommands: findOwnCommands(overrides), buildsItself };
      return { ...(await builder.plan(source, context)), builder: builder.name };
    },
  };
}

/** Each step in one line, with the condition under which it runs. */
export function stepsOf({ steps }: BuildPlan): string[] {
  return steps.map(({ when, argv }) => [...(when === undefined ? [] : [`${when}:`]), ...argv].join(' '));
}
