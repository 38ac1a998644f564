import { describe, expect, it } from 'vitest';
import { openPlanFixture, plainContext, stepsOf, toolchains } from '#test/support/builds/plan-fixture.ts';
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

  it.each([
    ['3.11.7', 'gunicorn==20.1.0', true],
    ['3.11.7', 'setuptools==65.5.0', false],
    ['3.13.0', 'gunicorn==20.1.0', false],
  ])('with Python %s and %s, installs setuptools as environments of that Python had it: %s', async (version, line, has) => {
    const source = await openSource({ 'requirements.txt': line });
    const python = { version, path: [], mounts: [], executable: '/p', pip: true };
    const plan = await pythonBuilder.plan(source, {
      ...plainContext,
      toolchains: { ...toolchains, findPython: async () => python },
    });
    expect(stepsOf(plan).some((step) => step.endsWith('setuptools<81'))).toBe(has);
  });

  it.each([
    ['1', true],
    ['0', false],
  ])('with RAILPACK_PYTHON_PLAYWRIGHT_INSTALL=%s installs a browser into the image: %s', async (value, installs) => {
    const plan = await planFor({ 'requirements.txt': 'playwright\n' }, { RAILPACK_PYTHON_PLAYWRIGHT_INSTALL: value });
    expect(stepsOf(plan).includes('playwright install chromium')).toBe(installs);
    expect(plan.systemPackages).toContain('libnss3');
    for (const env of [plan.env, plan.runtimeEnv]) expect(env).toMatchObject({ PLAYWRIGHT_BROWSERS_PATH: '/app/.playwright' });
  });

  it("with uv.lock takes the packages from the operator's mirror, because the lockfile names PyPI", async () => {
    const source = await openSource({ 'pyproject.toml': '[project]\nname = "a"', 'uv.lock': '' });
    const plan = await pythonBuilder.plan(source, { ...plainContext, hasPythonMirror: true });
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

  it.each<[Record<string, string>, string[]]>([
    [
      { 'requirements.txt': 'psycopg2-binary==2\npsycopg2==2.9\nconstructor\nPyCairo>=1\n# pydub\n' },
      ['libpq-dev', 'libcairo2-dev'],
    ],
    [{ 'pyproject.toml': '[project]\nname = "a"\ndependencies = [\n  "pdf2image>=1",\n]\n' }, ['poppler-utils']],
    [{ 'pyproject.toml': '', 'poetry.lock': '[[package]]\nname = "mysqlclient"\n' }, ['default-libmysqlclient-dev']],
  ])('of %j has the libraries of Debian that its packages need', async (files, libraries) => {
    expect((await planFor(files)).systemPackages).toEqual(libraries);
  });

  it('collects the static files of Django where the settings say where to', async () => {
    const django = { 'requirements.txt': 'django', 'manage.py': '', 'site/settings.py': 'STATIC_ROOT = BASE_DIR / "static"\n' };
    expect(stepsOf(await planFor(django)).at(-1)).toBe('python manage.py collectstatic --noinput');
    expect(stepsOf(await planFor(django, { DISABLE_COLLECTSTATIC: '1' })).at(-1)).toContain('pip');
    expect(stepsOf(await planFor({ ...django, 'site/settings.py': '' })).at(-1)).toContain('pip');
    const perhaps = { ...django, 'site/settings.py': 'if not DEBUG:\n    STATIC_ROOT = "x"\n' };
    expect(stepsOf(await planFor(perhaps)).at(-1)).toContain('STATIC_ROOT is not set');
    const below = { 'requirements.txt': 'django', 'shop/manage.py': '', 'shop/site/settings/base.py': 'STATIC_ROOT = "x"\n' };
    expect(stepsOf(await planFor(below)).at(-1)).toBe('python shop/manage.py collectstatic --noinput');
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
    ['the only script', { 'weather.py': '', 'setup.py': '', 'test_weather.py': '' }, 'python weather.py'],
    ['one of several scripts', { 'a.py': '', 'b.py': '' }, undefined],
    [
      'Django one directory below',
      { 'shop/manage.py': '', 'shop/site/wsgi.py': '', '.venv/bin/gunicorn': '' },
      'cd shop && gunicorn site.wsgi --bind 0.0.0.0:$PORT',
    ],
    [
      'Django with a server for ASGI alone',
      { 'manage.py': '', 'shop/wsgi.py': '', 'shop/asgi.py': '', '.venv/bin/uvicorn': '' },
      'uvicorn shop.asgi:application --host 0.0.0.0 --port $PORT',
    ],
    [
      'FastAPI in a package',
      { 'app/main.py': 'from app.db import x\napp = FastAPI()', '.venv/bin/uvicorn': '' },
      'uvicorn app.main:app --host 0.0.0.0 --port $PORT',
    ],
    [
      'FastAPI in a directory that is no package',
      { 'src/main.py': 'import db\napp = FastAPI()', '.venv/bin/uvicorn': '' },
      'uvicorn main:app --app-dir src --host 0.0.0.0 --port $PORT',
    ],
    [
      'Flask that a function makes',
      { 'run.py': 'from shop import create_app\napp = create_app()', '.venv/bin/gunicorn': '' },
      'gunicorn run:app --bind 0.0.0.0:$PORT',
    ],
    [
      'a package of Flask',
      { 'shop/__init__.py': 'def create_app():\n', '.venv/bin/flask': '', '.venv/bin/gunicorn': '' },
      "gunicorn 'shop:create_app()' --bind 0.0.0.0:$PORT",
    ],
    [
      'what .flaskenv names',
      { '.flaskenv': 'FLASK_APP=shop.py\n', 'shop.py': 'app = create_app()', 'config.py': '', '.venv/bin/flask': '' },
      'flask --app shop:app run --host 0.0.0.0 --port $PORT',
    ],
    [
      'Dash',
      { 'app.py': 'app = Dash()\nserver = app.server', '.venv/bin/gunicorn': '' },
      'gunicorn app:server --bind 0.0.0.0:$PORT',
    ],
    ['Sanic', { 'app.py': 'app = Sanic("a")', '.venv/bin/sanic': '' }, 'sanic app:app --host=0.0.0.0 --port=$PORT'],
    [
      'Streamlit',
      { 'streamlit_app.py': 'import streamlit as st', '.venv/bin/streamlit': '' },
      'streamlit run streamlit_app.py --server.port $PORT --server.address 0.0.0.0 --server.headless true',
    ],
    ['Gradio', { 'app.py': 'import gradio as gr' }, 'GRADIO_SERVER_NAME=0.0.0.0 GRADIO_SERVER_PORT=$PORT python app.py'],
    [
      'a script of Poetry',
      { 'pyproject.toml': '[tool.poetry]\nname = "a"\n[tool.poetry.scripts]\nstart = "shop.web:run"\n' },
      "python -c 'import sys; from shop.web import run; sys.exit(run())'",
    ],
    ['nothing', { 'lib/a.py': '' }, undefined],
  ])('starts %s', async (_, files, web) => {
    const source = await openSource(files);
    expect((await findPythonProcesses(source, await readPythonProject(source)))['web']).toBe(web);
  });

  it('is refused with the place of the fault if a file is not valid', async () => {
    await expect(planFor({ 'pyproject.toml': '[project\n' })).rejects.toThrow(/^pyproject\.toml is not valid TOML: /);
  });
});
