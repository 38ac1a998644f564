/** What a Python app runs when no Procfile says so. */
import { posix } from 'node:path';
import type { SourceTree } from '../../plans/source-tree.ts';
import { findDjango } from './django.ts';
import type { PythonProject } from './python-project.ts';

export const pythonHint =
  'There is no main.py, app.py or manage.py at the top of the source. Add a Procfile with a line as: web: gunicorn app:app --bind 0.0.0.0:$PORT';

/** At the top of the source, in the order in which they are looked for. */
export const mainFiles = [
  'main.py', 'app.py', 'start.py', 'bot.py', 'hello.py', 'server.py', 'run.py', 'wsgi.py', 'asgi.py', 'application.py', 'api.py',
  'streamlit_app.py', 'index.py', 'web.py',
] as const; // biome-ignore format: a list of words

/** Where packages keep it. */
const nestedFiles = ['app', 'src', 'api', 'backend', 'server'].flatMap((directory) =>
  ['main.py', 'app.py', 'server.py', 'run.py'].map((name) => `${directory}/${name}`),
);

/** Files at the top that are no app. */
const otherFiles = /^(setup|conftest|noxfile|fabfile|tasks|config|settings|gunicorn\S*|test_\S+|\S+_test|tests?)\.py$/;

type Processes = Readonly<Record<string, string>>;
type HasProgram = (program: string) => Promise<boolean>;

/** By what is installed, not by what is named in a file of dependencies. */
export async function findPythonProcesses(built: SourceTree, project: PythonProject): Promise<Processes> {
  const has: HasProgram = (program) => built.hasFile(`.venv/bin/${program}`);
  const django = await findDjango(built);
  if (django !== undefined) return { web: await django.command(has) };
  const file = await findMain(built);
  const web =
    (file === undefined ? undefined : await serverCommand(file, (await built.readText(file)) ?? '', has)) ??
    (await findFactory(built, file, has)) ??
    (await findScript(project, has)) ??
    (file === undefined ? undefined : `python ${file}`);
  return web === undefined ? {} : { web };
}

async function findMain(built: SourceTree): Promise<string | undefined> {
  for (const file of mainFiles) if (await built.hasFile(file)) return file;
  for (const file of nestedFiles) if (await built.hasFile(file)) return file;
  const scripts = (await built.list('')).filter((name) => /^\w[\w.-]*\.py$/.test(name) && !otherFiles.test(name));
  return scripts.length === 1 ? scripts[0] : undefined;
}

/** For a file that has an application object, or a framework with a program of its own. */
async function serverCommand(file: string, text: string, has: HasProgram): Promise<string | undefined> {
  const [module, directory] = moduleOf(file, text);
  const asgi =
    findVariable(text, ['FastAPI', 'Starlette', 'Litestar', 'Quart', 'FastHTML', 'Robyn', 'Blacksheep']) ??
    (/\bfast_app\(/.test(text) ? 'app' : undefined) ??
    /^(\w{1,80})[ \t]*=[ \t]*get_asgi_application\(/m.exec(text)?.[1];
  const below = directory === undefined ? '' : ` --app-dir ${directory}`;
  if (asgi !== undefined && (await has('uvicorn'))) return `uvicorn ${module}:${asgi}${below} --host 0.0.0.0 --port $PORT`;
  if (asgi !== undefined && (await has('hypercorn'))) return `hypercorn ${module}:${asgi} --bind 0.0.0.0:$PORT`;
  const sanic = findVariable(text, ['Sanic']);
  if (sanic !== undefined && (await has('sanic'))) return `sanic ${module}:${sanic} --host=0.0.0.0 --port=$PORT`;
  // Of Dash, the server is what a web server takes.
  const wsgi =
    findVariable(text, ['Flask', 'Bottle', 'falcon.App', 'APIFlask', 'create_app', 'make_app']) ?? findDashServer(text);
  const chdir = directory === undefined ? '' : ` --chdir ${directory}`;
  if (wsgi !== undefined && (await has('gunicorn'))) return `gunicorn ${module}:${wsgi}${chdir} --bind 0.0.0.0:$PORT`;
  if (wsgi !== undefined && (await has('waitress-serve'))) return `waitress-serve --listen=0.0.0.0:$PORT ${module}:${wsgi}`;
  const flask = findVariable(text, ['Flask', 'APIFlask', 'create_app']);
  if (flask !== undefined && (await has('flask')))
    return `${directory === undefined ? '' : `PYTHONPATH=${directory} `}flask --app ${module}:${flask} run --host 0.0.0.0 --port $PORT`;
  const uses = (name: string): boolean => new RegExp(`^[ \\t]*(?:import|from)[ \\t]+${name}\\b`, 'm').test(text);
  if (uses('streamlit') && (await has('streamlit')))
    return `streamlit run ${file} --server.port $PORT --server.address 0.0.0.0 --server.headless true`;
  if (uses('chainlit') && (await has('chainlit'))) return `chainlit run ${file} --headless --host 0.0.0.0 --port $PORT`;
  if (uses('gradio')) return `GRADIO_SERVER_NAME=0.0.0.0 GRADIO_SERVER_PORT=$PORT python ${file}`;
  return undefined;
}

/**
 * As Python imports it from the top of the source, or from its directory where its own imports need that.
 * @returns the directory in the second case
 */
function moduleOf(file: string, text: string): readonly [module: string, directory?: string] {
  const name = posix.basename(file, '.py');
  const directory = posix.dirname(file);
  if (directory === '.') return [name];
  const isPackage = new RegExp(`^[ \\t]*(?:from|import)[ \\t]+(?:${directory}\\b|\\.)`, 'm').test(text);
  return isPackage || directory === 'app' || directory === 'api' ? [`${directory}.${name}`] : [name, directory];
}

/** `app` of `app = Flask(__name__)`. */
function findVariable(text: string, classes: readonly string[]): string | undefined {
  const names = classes.map((name) => name.replace('.', '\\.')).join('|');
  return new RegExp(
    `^(\\w{1,80})(?:[ \\t]{0,9}:[ \\t]{0,9}\\w{1,80})?[ \\t]{0,9}=[ \\t]{0,9}(?:\\w{1,80}\\.)?(?:${names})\\(`,
    'm',
  ).exec(text)?.[1];
}

function findDashServer(text: string): string | undefined {
  const dash = findVariable(text, ['Dash']);
  return dash === undefined
    ? undefined
    : new RegExp(`^(\\w{1,80})[ \\t]{0,9}=[ \\t]{0,9}${dash}\\.server\\b`, 'm').exec(text)?.[1];
}

/** A package whose `create_app` makes the application; one that .flaskenv names comes first. */
async function findFactory(built: SourceTree, main: string | undefined, has: HasProgram): Promise<string | undefined> {
  const named = /^[ \t]*(?:export[ \t]+)?FLASK_APP[ \t]*=[ \t]*["']?([\w./]{1,120})/m.exec(
    (await built.readText('.flaskenv')) ?? '',
  )?.[1];
  if (named !== undefined && (await has('flask'))) {
    const module = named.replace(/^\.\//, '').replace(/\.py$/, '').replaceAll('/', '.');
    const variable = findVariable((await built.readText(`${module.replaceAll('.', '/')}.py`)) ?? '', ['Flask', 'create_app']);
    if (variable !== undefined && (await has('gunicorn'))) return `gunicorn ${module}:${variable} --bind 0.0.0.0:$PORT`;
    return `flask --app ${module} run --host 0.0.0.0 --port $PORT`;
  }
  if (main !== undefined || !(await has('flask'))) return undefined;
  for (const directory of (await built.list('')).filter((name) => /^[A-Za-z]\w*$/.test(name))) {
    const text = (await built.readText(`${directory}/__init__.py`)) ?? '';
    const variable = findVariable(text, ['Flask']);
    const factory = /^def create_app\(/m.test(text) ? 'create_app()' : undefined;
    const app = variable ?? factory;
    if (app === undefined) continue;
    if (await has('gunicorn')) return `gunicorn '${directory}:${app}' --bind 0.0.0.0:$PORT`;
    return `flask --app ${directory} run --host 0.0.0.0 --port $PORT`;
  }
  return undefined;
}

/** The only script that pyproject.toml declares; one of Poetry is not installed, so its function is called. */
async function findScript({ pyproject }: PythonProject, has: HasProgram): Promise<string | undefined> {
  const scripts = Object.keys(pyproject?.project?.scripts ?? {}).filter((name) => /^[\w.-]+$/.test(name));
  const [script] = scripts;
  if (script !== undefined && scripts.length === 1 && (await has(script))) return script;
  const poetry = pyproject?.tool?.['poetry'] as { scripts?: Record<string, unknown> } | undefined;
  const functions = Object.values({ ...poetry?.scripts });
  const [, module, name] = functions.length === 1 ? (/^([\w.]{1,200}):(\w{1,80})$/.exec(String(functions[0])) ?? []) : [];
  return module === undefined ? undefined : `python -c 'import sys; from ${module} import ${name}; sys.exit(${name}())'`;
}
