import { describe, expect, it } from 'vitest';
import { openPlanFixture, stepsOf, toolchains } from '#test/support/builds/plan-fixture.ts';
import { pythonBuilder } from './python.ts';
import { findPythonProcesses } from './python-processes.ts';
import { readPythonProject } from './python-project.ts';

const { openSource, planFor } = openPlanFixture();

describe('the plan of a Python app', () => {
  const python = '/opt/tool/bin/python3';

  it('with a pyproject.toml that is built installs the project into an environment, and caches downloads alone', async () => {
    const plan = await planFor({ 'pyproject.toml': '[project]\nname = "hello"\n[build-system]\nrequires = ["hatchling"]\n' });
    const install = `${python} -m pip --python /app/.venv/bin/python3 install --disable-pip-version-check .`;
    expect(plan.builder).toBe('python');
    expect(stepsOf(plan)).toEqual([
      `unless-restored: ${python} -m venv --without-pip /app/.venv`,
      `if-restored: ${install}`,
      `unless-restored: ${install}`,
    ]);
    expect(plan.tree).toBeUndefined();
    expect(plan.path).toEqual(['/app/.venv/bin', '/opt/tool/bin']);
  });

  it.each([
    [
      'requirements.txt',
      { 'requirements.txt': 'six', 'pyproject.toml': '', 'uv.lock': '' },
      'install --disable-pip-version-check -r requirements.txt',
    ],
    ['uv.lock', { 'pyproject.toml': '[project]\nname = "a"', 'uv.lock': '' }, 'uv sync --locked --no-dev --no-editable'],
    [
      'poetry.lock',
      { 'pyproject.toml': '[tool.poetry]\nname = "a"', 'poetry.lock': '' },
      'uvx --with poetry-plugin-export poetry export --only main --output /tmp/requirements.txt',
    ],
    [
      'pdm.lock',
      { 'pyproject.toml': '[project]\nname = "a"', 'pdm.lock': '' },
      'uvx --with hishel<2 --with unearth<0.18 pdm install --prod --no-editable --check',
    ],
    ['Pipfile.lock', { Pipfile: '', 'Pipfile.lock': '{}' }, 'uvx pipenv install --deploy --ignore-pipfile'],
    ['Pipfile', { Pipfile: '' }, 'uvx pipenv install --skip-lock'],
    [
      'pyproject.toml',
      { 'pyproject.toml': '[project]\nname = "a"' },
      'uv pip install --python /app/.venv/bin/python3 -r pyproject.toml',
    ],
  ])('installs by the tool that %s belongs to', async (_, files, command) => {
    expect(stepsOf(await planFor(files as Record<string, string>)).join('\n')).toContain(command);
  });

  it("with uv.lock takes the packages from the operator's mirror, because the lockfile names PyPI", async () => {
    const source = await openSource({ 'pyproject.toml': '[project]\nname = "a"', 'uv.lock': '' });
    const plan = await pythonBuilder.plan(source, { toolchains, env: {}, cache: 'cold', hasPythonMirror: true });
    expect(stepsOf(plan).slice(1)).toEqual([
      'unless-restored: uv export --frozen --no-dev --no-emit-workspace --output-file /tmp/requirements.txt --quiet',
      'unless-restored: uv pip install --python /app/.venv/bin/python3 --requirements /tmp/requirements.txt',
      'uv sync --frozen --no-dev --no-editable --inexact',
    ]);
    expect(plan.tree?.paths).toEqual(['.venv']);
  });

  it.each<[Record<string, string>, string]>([
    [{ '.python-version': '# which\n3.11.7\n' }, '.python-version asks for 3.11.7'],
    [{ 'runtime.txt': 'python-3.12.1\n' }, 'runtime.txt asks for 3.12.1'],
    [{ '.tool-versions': 'python 3.9.23\n' }, '.tool-versions asks for 3.9.23'],
    [{ 'pyproject.toml': '[project]\nname="a"\nrequires-python = ">=3.11"\n' }, 'in pyproject.toml asks for >=3.11'],
    [{ Pipfile: '[requires]\npython_version = "3.13"\n' }, 'Pipfile asks for 3.13'],
  ])('says which Python %j asks for', async (files, note) => {
    expect((await planFor({ 'main.py': '', ...files })).notes[0]).toContain(note);
  });

  it('collects the static files of Django where the settings say where to', async () => {
    const django = { 'requirements.txt': 'django', 'manage.py': '', 'site/settings.py': 'STATIC_ROOT = BASE_DIR / "static"\n' };
    expect(stepsOf(await planFor(django)).at(-1)).toBe('python manage.py collectstatic --noinput');
    expect(stepsOf(await planFor(django, { DISABLE_COLLECTSTATIC: '1' })).at(-1)).toContain('pip');
    expect(stepsOf(await planFor({ ...django, 'site/settings.py': '' })).at(-1)).toContain('pip');
  });

  it.each<[string, Record<string, string>, string | undefined]>([
    ['Django', { 'manage.py': '', 'shop/wsgi.py': '', '.venv/bin/gunicorn': '' }, 'gunicorn shop.wsgi --bind 0.0.0.0:$PORT'],
    ['Django without gunicorn', { 'manage.py': '', 'shop/wsgi.py': '' }, 'python manage.py runserver 0.0.0.0:$PORT'],
    ['FastAPI', { 'main.py': 'api = FastAPI()', '.venv/bin/uvicorn': '' }, 'uvicorn main:api --host 0.0.0.0 --port $PORT'],
    ['FastHTML', { 'main.py': 'app, rt = fast_app()', '.venv/bin/uvicorn': '' }, 'uvicorn main:app --host 0.0.0.0 --port $PORT'],
    ['Flask', { 'app.py': 'app = Flask(__name__)', '.venv/bin/gunicorn': '' }, 'gunicorn app:app --bind 0.0.0.0:$PORT'],
    [
      'Flask with its own server',
      { 'app.py': 'web = Flask(__name__)', '.venv/bin/flask': '' },
      'flask --app app:web run --host 0.0.0.0 --port $PORT',
    ],
    ['Flask without a server', { 'app.py': 'app = Flask(__name__)' }, 'python app.py'],
    ['a script', { 'bot.py': '' }, 'python bot.py'],
    ['nothing', { 'lib/a.py': '' }, undefined],
  ])('starts %s', async (_, files, web) => {
    const source = await openSource(files);
    expect((await findPythonProcesses(source, await readPythonProject(source)))['web']).toBe(web);
  });

  it('is refused with the place of the fault if a file is not valid', async () => {
    await expect(planFor({ 'pyproject.toml': '[project\n' })).rejects.toThrow(/^pyproject\.toml is not valid TOML: /);
  });
});
