import { createHash } from 'node:crypto';
import type { Builder, BuildStep, CachedTree } from './builder.ts';
import type { SourceTree } from './source-tree.ts';

const environment = '/app/.venv';

export const pythonBuilder: Builder = {
  name: 'python',
  looksFor: 'requirements.txt or pyproject.toml (Python)',
  async detect(source) {
    const why = await findManifest(source);
    return why === undefined ? undefined : { what: 'Python app', why };
  },
  async plan(source, context) {
    const python = await context.toolchains.findPython();
    const manifest = await findManifest(source);
    const tree = await planTree(source, python.version);
    const python3 = `${environment}/bin/python3`;
    const pip = [
      ...(python.pip ? [python.executable, '-m', 'pip', '--python', python3] : [python3, '-m', 'pip']),
      'install',
      '--disable-pip-version-check',
    ];
    const create: BuildStep = {
      title: `Making an environment with Python ${python.version}`,
      argv: [python.executable, '-m', 'venv', ...(python.pip ? ['--without-pip'] : []), environment],
      when: 'unless-restored',
    };
    const wanted = manifest === 'requirements.txt' ? ['-r', 'requirements.txt'] : ['.'];
    const title = `pip install ${wanted.join(' ')}, cache ${context.cache}`;
    return {
      notes: [],
      steps: [
        create,
        { title: `${title}, environment reused`, argv: [...pip, ...wanted], when: 'if-restored' },
        { title, argv: [...pip, ...wanted], when: 'unless-restored', savesTree: true },
      ],
      env: {
        PIP_CACHE_DIR: '/cache/pip',
        PIP_PROGRESS_BAR: 'off',
        PIP_ROOT_USER_ACTION: 'ignore',
        VIRTUAL_ENV: environment,
        PYTHONUNBUFFERED: '1',
      },
      path: [`${environment}/bin`, ...python.path],
      toolchain: python.mounts,
      cacheDirectories: ['pip'],
      ...(tree === undefined ? {} : { tree }),
      runtimeEnv: { VIRTUAL_ENV: environment, PYTHONUNBUFFERED: '1', PYTHONDONTWRITEBYTECODE: '1', PYTHONHASHSEED: 'random' },
      defaultProcesses: findDefaultProcesses,
      processHint:
        'A Python app says what to run in a Procfile. Add one with a line as: web: gunicorn app:app --bind 0.0.0.0:$PORT',
    };
  },
};

async function findManifest(source: SourceTree): Promise<'requirements.txt' | 'pyproject.toml' | undefined> {
  for (const name of ['requirements.txt', 'pyproject.toml'] as const) {
    if (await source.hasFile(name)) return name;
  }
  return undefined;
}

// Never a line break before the words: each line would be read to the end of the file.
const namesOtherFiles = /^[ \t]*(-[rce]|--requirement|--constraint|--editable|\.{0,2}\/|\.[ \t\r]*$|file:)|@[ \t]*file:/m;

/** The environment follows from requirements.txt alone, unless that names other files. */
async function planTree(source: SourceTree, version: string): Promise<CachedTree | undefined> {
  const requirements = await source.readText('requirements.txt');
  if (requirements === undefined || namesOtherFiles.test(requirements)) return undefined;
  return {
    path: '.venv',
    key: createHash('sha256')
      .update(JSON.stringify([version, requirements]))
      .digest('hex'),
  };
}

/** Only where there is nothing to guess: Django has one entry point, and gunicorn is the app's own choice. */
async function findDefaultProcesses(built: SourceTree): Promise<Readonly<Record<string, string>>> {
  if (!(await built.hasFile('manage.py')) || !(await built.hasFile('.venv/bin/gunicorn'))) return {};
  for (const name of await built.list('')) {
    if (/^\w+$/.test(name) && (await built.hasFile(`${name}/wsgi.py`)))
      return { web: `gunicorn ${name}.wsgi --bind 0.0.0.0:$PORT` };
  }
  return {};
}
