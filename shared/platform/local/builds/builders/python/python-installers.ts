import { satisfies } from 'semver';
import type { PythonToolchain } from '../../../toolchains/toolchain.ts';
import type { BuildStep, CachedTrees } from '../../plans/build-plan.ts';
import { treeKey } from '../../plans/tree-key.ts';
import type { PythonProject } from './python-project.ts';

/** Where the packages of every Python app are. */
export const environment = '/app/.venv';

export type InstallerName = 'pip' | 'uv' | 'uv-pip' | 'poetry' | 'pdm' | 'pipenv' | 'none';

export interface PythonInstall {
  readonly steps: readonly BuildStep[];
  readonly tree?: CachedTrees;
}

export interface InstallFacts {
  readonly project: PythonProject;
  readonly python: PythonToolchain;
  readonly cache: 'cold' | 'warm';
  /** Of PyPI, which lockfiles of uv name. */
  readonly hasMirror: boolean;
}

/** The tool whose files the app has. requirements.txt comes first: exports of other tools are there to be installed. */
export function findInstaller({ files, pyproject }: PythonProject): InstallerName {
  if (files.has('requirements.txt')) return 'pip';
  if (pyproject !== undefined) {
    if (files.has('uv.lock') || pyproject.tool?.['uv'] !== undefined) return 'uv';
    if (files.has('poetry.lock') || pyproject.tool?.['poetry'] !== undefined) return 'poetry';
    if (files.has('pdm.lock') || pyproject.tool?.['pdm'] !== undefined) return 'pdm';
    return pyproject['build-system'] === undefined && pyproject.tool?.['setuptools'] === undefined ? 'uv-pip' : 'pip';
  }
  if (files.has('Pipfile')) return 'pipenv';
  return files.has('setup.py') ? 'pip' : 'none';
}

/** Plans the installation by the tool that the app's files are of. */
export function planInstall(name: InstallerName, facts: InstallFacts): PythonInstall {
  switch (name) {
    case 'pip':
      return planPip(facts);
    case 'uv':
      return planUv(facts);
    case 'uv-pip':
      return planReplaced(facts, 'uv pip install', [...uvPip, '-r', 'pyproject.toml'], ['pyproject.toml']);
    case 'poetry': {
      const argv = ['uvx', '--with', 'poetry-plugin-export', 'poetry', 'export', '--only', 'main', '--output', exported];
      return planPoetry(facts, argv);
    }
    case 'pdm': {
      // PDM allows releases of these libraries that it does not work with.
      const pdm = ['uvx', '--with', 'hishel<2', '--with', 'unearth<0.18', 'pdm', 'install', '--prod', '--no-editable'];
      const argv = facts.project.files.has('pdm.lock') ? [...pdm, '--check'] : pdm;
      return planReplaced(facts, 'pdm install', argv, ['pyproject.toml', 'pdm.lock']);
    }
    case 'pipenv': {
      const locked = facts.project.files.has('Pipfile.lock');
      const argv = ['uvx', 'pipenv', 'install', ...(locked ? ['--deploy', '--ignore-pipfile'] : ['--skip-lock'])];
      return planReplaced(facts, 'pipenv install', argv, ['Pipfile', 'Pipfile.lock']);
    }
    case 'none':
      return { steps: [makeEnvironment(facts)] };
  }
}

function makeEnvironment({ python }: InstallFacts): BuildStep {
  return {
    title: `Making an environment with Python ${python.version}`,
    argv: [python.executable, '-m', 'venv', ...(python.pip ? ['--without-pip'] : []), environment],
    when: 'unless-restored',
  };
}

function planPip(facts: InstallFacts): PythonInstall {
  const { python, project, cache } = facts;
  const python3 = `${environment}/bin/python3`;
  const pip = [
    ...(python.pip ? [python.executable, '-m', 'pip', '--python', python3] : [python3, '-m', 'pip']),
    'install',
    '--disable-pip-version-check',
  ];
  const wanted = project.files.has('requirements.txt') ? ['-r', 'requirements.txt'] : ['.'];
  const title = `pip install ${wanted.join(' ')}, cache ${cache}`;
  const reused = `${title}, environment reused`;
  const requirements = project.files.get('requirements.txt');
  // The environment follows from requirements.txt alone, unless that names other files.
  const alone = requirements !== undefined && !namesOtherFiles.test(requirements);
  const exact = alone && requirements.split('\n').every(isExact);
  // Old packages import it without asking for it. Environments had it until Python 3.12, and its newest releases lack pkg_resources.
  const expectsSetuptools = satisfies(python.version, '>=3 <3.12') && !/^[ \t]*setuptools\b/m.test(requirements ?? '');
  const setuptools: BuildStep = { title: 'pip install setuptools', argv: [...pip, 'setuptools<81'], when: 'unless-restored' };
  return {
    steps: [
      makeEnvironment(facts),
      ...(expectsSetuptools ? [setuptools] : []),
      { title: reused, argv: [...pip, ...wanted], when: 'if-restored', ...(exact ? { skipIf: async () => reused } : {}) },
      { title, argv: [...pip, ...wanted], when: 'unless-restored', savesTree: true },
    ],
    ...(alone ? { tree: { paths: ['.venv'], key: keyOf(facts, ['requirements.txt']) } } : {}),
  };
}

// Never a line break before the words: each line would be read to the end of the file.
const namesOtherFiles = /^[ \t]*(-[rce]|--requirement|--constraint|--editable|\.{0,2}\/|\.[ \t\r]*$|file:)|@[ \t]*file:/m;

/** Whether a line of requirements.txt names one version, or none. */
function isExact(line: string): boolean {
  const text = line.trim();
  return text === '' || text.startsWith('#') || text.startsWith('--hash') || text.includes('==');
}

/**
 * A lockfile of uv has the addresses of its packages at PyPI. With a mirror they are listed and installed from that, proven by the same
 * hashes; `--locked` would take the lockfile for outdated.
 */
function planUvWithMirror(facts: InstallFacts): PythonInstall {
  const flags = ['--frozen', '--no-dev'];
  const title = `uv pip install from uv.lock, cache ${facts.cache}`;
  const all = ['uv', 'sync', ...flags, '--no-editable', '--inexact'];
  const list = ['uv', 'export', ...flags, '--no-emit-workspace', '--output-file', exported, '--quiet'];
  return {
    steps: [
      makeEnvironment(facts),
      { title: 'uv export', argv: list, when: 'unless-restored' },
      { title, argv: [...uvPip, '--requirements', exported], when: 'unless-restored', savesTree: true },
      { title: 'uv sync, the project itself', argv: all },
    ],
    tree: { paths: ['.venv'], key: keyOf(facts, ['pyproject.toml', 'uv.lock', 'uv.toml']) },
  };
}

/** The packages of others are kept; the project and its workspace are installed anew. */
function planUv(facts: InstallFacts): PythonInstall {
  if (facts.hasMirror && facts.project.files.has('uv.lock')) return planUvWithMirror(facts);
  const locked = facts.project.files.has('uv.lock') ? ['--locked'] : [];
  const flags = ['--no-dev', '--no-editable'];
  const others = ['uv', 'sync', ...locked, ...flags, '--no-install-project', '--no-install-workspace'];
  const all = ['uv', 'sync', ...locked, ...flags];
  const title = `uv sync ${[...locked, ...flags].join(' ')}, cache ${facts.cache}`;
  return {
    steps: [
      { title, argv: others, when: 'unless-restored', savesTree: true },
      { title: `${title}, environment reused`, argv: all, when: 'if-restored' },
      { title: 'uv sync, the project itself', argv: all, when: 'unless-restored' },
    ],
    tree: { paths: ['.venv'], key: keyOf(facts, ['pyproject.toml', 'uv.lock', 'uv.toml']) },
  };
}

/** Into the environment of the app: by default it would be that of the interpreter. */
const uvPip = ['uv', 'pip', 'install', '--python', `${environment}/bin/python3`];
/** In the /tmp of the build, which its steps share. */
const exported = '/tmp/requirements.txt';

/**
 * Poetry says which packages its lockfile has, and uv installs them with their hashes. Poetry would ask PyPI itself, whatever index
 * the operator has configured.
 */
function planPoetry(facts: InstallFacts, argv: readonly string[]): PythonInstall {
  const lockfile = 'poetry.lock';
  const title = `uv pip install from ${lockfile}, cache ${facts.cache}`;
  const lock: BuildStep = { title: 'poetry lock', argv: ['uvx', 'poetry', 'lock'], when: 'unless-restored' };
  return {
    steps: [
      makeEnvironment(facts),
      ...(facts.project.files.has(lockfile) ? [] : [lock]),
      { title: 'poetry export', argv, when: 'unless-restored' },
      { title, argv: [...uvPip, '--requirements', exported], when: 'unless-restored', savesTree: true },
    ],
    tree: { paths: ['.venv'], key: keyOf(facts, ['pyproject.toml', lockfile]) },
  };
}

/** Tools whose lockfile says all: a restored environment needs nothing more. */
function planReplaced(facts: InstallFacts, name: string, argv: readonly string[], files: readonly string[]): PythonInstall {
  const title = `${name}, cache ${facts.cache}`;
  const reused = `${title}, environment reused`;
  return {
    steps: [
      makeEnvironment(facts),
      { title: reused, argv, when: 'if-restored', skipIf: async () => reused },
      { title, argv, when: 'unless-restored', savesTree: true },
    ],
    tree: { paths: ['.venv'], key: keyOf(facts, files) },
  };
}

function keyOf({ python, project }: InstallFacts, names: readonly string[]): string {
  const texts = names.map((name) => project.files.get(name));
  return treeKey(python.version, ...texts);
}
