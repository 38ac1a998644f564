import type { PythonToolchain, Toolchain } from '../../../toolchains/toolchain.ts';
import type { BuildStep } from '../../plans/build-plan.ts';
import type { Builder } from '../../plans/builder.ts';
import { describeVersion } from '../../plans/describe-version.ts';
import type { SourceTree } from '../../plans/source-tree.ts';
import { asksForBrowser, installBrowser, playwrightEnv } from '../browsers/playwright.ts';
import { findDjango } from './django.ts';
import { environment, findInstaller, planInstall } from './python-installers.ts';
import { findPythonLibraries } from './python-libraries.ts';
import { findPythonProcesses, mainFiles, pythonHint } from './python-processes.ts';
import { readPythonProject } from './python-project.ts';

export const pythonBuilder: Builder = {
  name: 'python',
  looksFor: 'requirements.txt, pyproject.toml, Pipfile or main.py (Python)',
  async detect(source) {
    for (const name of ['requirements.txt', 'pyproject.toml', 'Pipfile', 'setup.py', 'manage.py', ...mainFiles])
      if (await source.hasFile(name)) return { what: 'Python app', why: name };
    return undefined;
  },
  async plan(source, context) {
    const project = await readPythonProject(source);
    const { pins } = context;
    const pinned = pins.get('python');
    const requests = [...(pinned === undefined ? [] : [pinned]), ...project.versions];
    const python = await context.toolchains.findPython(requests);
    const installer = findInstaller(project);
    const uv =
      installer === 'pip' || installer === 'none'
        ? undefined
        : await context.toolchains.findTool('uv', pins.get('uv') ?? { version: 'latest', source: project.manifest });
    const install = planInstall(installer, {
      project,
      python,
      cache: context.cache,
      hasMirror: context.hasPythonMirror === true,
    });
    const tools: readonly (PythonToolchain | Toolchain)[] = uv === undefined ? [python] : [python, uv];
    return {
      notes: [describeVersion('Python', python.version, requests[0]), ...(uv === undefined ? [] : [`Using uv ${uv.version}`])],
      steps: [
        ...install.steps,
        ...(asksForBrowser('PYTHON', context.env) ? [installBrowser('playwright')] : []),
        ...(await collectStatic(source, context.env)),
      ],
      env: {
        PIP_CACHE_DIR: '/cache/pip',
        PIP_PROGRESS_BAR: 'off',
        PIP_ROOT_USER_ACTION: 'ignore',
        PIP_DISABLE_PIP_VERSION_CHECK: '1',
        VIRTUAL_ENV: environment,
        PYTHONUNBUFFERED: '1',
        ...playwrightEnv,
        ...(uv === undefined ? {} : uvEnvironment(python)),
      },
      path: [`${environment}/bin`, ...tools.flatMap(({ path }) => path)],
      toolchain: tools.flatMap(({ mounts }) => mounts),
      cacheDirectories: uv === undefined ? ['pip'] : ['pip', 'uv'],
      ...(install.tree === undefined ? {} : { tree: install.tree }),
      systemPackages: findPythonLibraries(project),
      runtimeEnv: {
        VIRTUAL_ENV: environment,
        PYTHONUNBUFFERED: '1',
        PYTHONDONTWRITEBYTECODE: '1',
        PYTHONHASHSEED: 'random',
        ...playwrightEnv,
      },
      defaultProcesses: (built) => findPythonProcesses(built, project),
      processHint: pythonHint,
    };
  },
};

function uvEnvironment(python: PythonToolchain): Readonly<Record<string, string>> {
  return {
    UV_CACHE_DIR: '/cache/uv',
    UV_LINK_MODE: 'copy',
    UV_NO_PROGRESS: '1',
    UV_PYTHON: python.executable,
    UV_PYTHON_DOWNLOADS: 'never',
    UV_PROJECT_ENVIRONMENT: environment,
    UV_TOOL_DIR: '/cache/uv/tools',
    POETRY_CACHE_DIR: '/cache/uv/poetry',
    POETRY_VIRTUALENVS_IN_PROJECT: 'true',
    PDM_CACHE_DIR: '/cache/uv/pdm',
    PDM_CHECK_UPDATE: 'false',
    PIPENV_CACHE_DIR: '/cache/uv/pipenv',
    PIPENV_VENV_IN_PROJECT: '1',
    PIPENV_NOSPIN: '1',
    PIPENV_YES: '1',
  };
}

/** Django's static files, where the settings say where they go. Heroku's variable turns it off. */
async function collectStatic(source: SourceTree, env: Readonly<Record<string, string>>): Promise<readonly BuildStep[]> {
  if ((env['DISABLE_COLLECTSTATIC'] ?? '0') !== '0') return [];
  const django = await findDjango(source);
  if (django === undefined || django.collectsStatic === 'no') return [];
  const manage = django.directory === '' ? 'manage.py' : `${django.directory}/manage.py`;
  const argv = ['python', manage, 'collectstatic', '--noinput'];
  return [{ title: argv.join(' '), argv: django.collectsStatic === 'yes' ? argv : ['/bin/sh', '-c', collectIfSet, manage] }];
}

const collectIfSet =
  'if python "$0" diffsettings --all | grep -q "STATIC_ROOT = None"; then echo "STATIC_ROOT is not set: no static files to collect"; else exec python "$0" collectstatic --noinput; fi';
