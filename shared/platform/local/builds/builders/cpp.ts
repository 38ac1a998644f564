import type { BuildStep } from '../plans/build-plan.ts';
import type { Builder } from '../plans/builder.ts';
import { chooseProgram } from '../plans/choose-program.ts';
import type { SourceTree } from '../plans/source-tree.ts';

const output = 'build';

export const cppBuilder: Builder = {
  name: 'cpp',
  looksFor: 'CMakeLists.txt or meson.build (C++)',
  async detect(source) {
    for (const why of ['CMakeLists.txt', 'meson.build']) if (await source.hasFile(why)) return { what: 'C++ app', why };
    return undefined;
  },
  async plan(source, context) {
    const meson = !(await source.hasFile('CMakeLists.txt'));
    const uv = meson ? await context.toolchains.findTool('uv', { version: 'latest', source: 'meson.build' }) : undefined;
    const python = meson ? await context.toolchains.findPython() : undefined;
    const project = await findProject(source, meson);
    return {
      notes: [],
      steps: meson ? mesonSteps() : cmakeSteps(),
      env: {
        ...(uv === undefined
          ? {}
          : { UV_CACHE_DIR: '/cache/uv', UV_PYTHON: python?.executable ?? '', UV_PYTHON_DOWNLOADS: 'never' }),
      },
      path: [`/app/${output}`, ...(uv?.path ?? []), ...(python?.path ?? [])],
      toolchain: [...(uv?.mounts ?? []), ...(python?.mounts ?? [])],
      cacheDirectories: meson ? ['uv'] : [],
      // Both build what has changed only, and find that out by themselves.
      runtimeEnv: {},
      async defaultProcesses(built) {
        const chosen = chooseProgram(await findPrograms(built), [project]);
        return chosen === undefined ? {} : { web: `${output}/${chosen}` };
      },
      processHint: `The build left no program in ${output}, or several and none is called web, server or like the project. Add a Procfile with a line as: web: ${output}/<program>`,
    };
  },
};

function cmakeSteps(): readonly BuildStep[] {
  return [
    { title: 'cmake -S . -B build', argv: ['cmake', '-S', '.', '-B', output, '-DCMAKE_BUILD_TYPE=Release'] },
    { title: 'cmake --build build', argv: ['cmake', '--build', output, '--parallel', '2'] },
  ];
}

function mesonSteps(): readonly BuildStep[] {
  const meson = ['uvx', '--with', 'ninja', 'meson'];
  return [
    { title: 'meson setup build', argv: [...meson, 'setup', output, '--buildtype=release'] },
    { title: 'meson compile', argv: [...meson, 'compile', '-C', output] },
  ];
}

async function findProject(source: SourceTree, meson: boolean): Promise<string | undefined> {
  const text = (await source.readText(meson ? 'meson.build' : 'CMakeLists.txt')) ?? '';
  return /^project\(\s?["']?([\w.-]{1,80})/im.exec(text)?.[1];
}

const elf = [0x7f, 0x45, 0x4c, 0x46];

async function findPrograms(built: SourceTree): Promise<readonly string[]> {
  const programs: string[] = [];
  for (const name of await built.list(output)) {
    const start = await built.readBytes(`${output}/${name}`, elf.length);
    const isElf = elf.every((byte, index) => start?.[index] === byte);
    if (isElf && /^[\w.-]+$/.test(name) && !/\.(o|so|a)(\.|$)/.test(name)) programs.push(name);
  }
  return programs;
}
