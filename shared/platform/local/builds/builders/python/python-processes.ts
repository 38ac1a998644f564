/** What a Python app runs when no Procfile says so. */
import type { SourceTree } from '../../plans/source-tree.ts';
import type { PythonProject } from './python-project.ts';

export const pythonHint =
  'There is no main.py, app.py or manage.py at the top of the source. Add a Procfile with a line as: web: gunicorn app:app --bind 0.0.0.0:$PORT';

/** In the order in which they are looked for. */
export const mainFiles = ['main.py', 'app.py', 'start.py', 'bot.py', 'hello.py', 'server.py', 'run.py', 'wsgi.py'] as const;

type Processes = Readonly<Record<string, string>>;

/** By what is installed, not by what is named in a file of dependencies. */
export async function findPythonProcesses(built: SourceTree, project: PythonProject): Promise<Processes> {
  const has = (program: string): Promise<boolean> => built.hasFile(`.venv/bin/${program}`);
  if (await built.hasFile('manage.py')) return { web: await djangoCommand(built, await has('gunicorn')) };
  const file = await findMain(built);
  if (file === undefined) {
    const scripts = Object.keys(project.pyproject?.project?.scripts ?? {}).filter((name) => /^[\w.-]+$/.test(name));
    const [script] = scripts;
    return script !== undefined && scripts.length === 1 && (await has(script)) ? { web: script } : {};
  }
  const text = (await built.readText(file)) ?? '';
  const module = file.slice(0, -'.py'.length);
  const asgi =
    findVariable(text, ['FastAPI', 'Starlette', 'Litestar', 'Quart', 'FastHTML']) ??
    (/\bfast_app\(/.test(text) ? 'app' : undefined);
  if (asgi !== undefined && (await has('uvicorn'))) return { web: `uvicorn ${module}:${asgi} --host 0.0.0.0 --port $PORT` };
  const wsgi = findVariable(text, ['Flask', 'Bottle', 'Sanic', 'falcon.App', 'Dash']);
  if (wsgi !== undefined && (await has('gunicorn'))) return { web: `gunicorn ${module}:${wsgi} --bind 0.0.0.0:$PORT` };
  const flask = findVariable(text, ['Flask']);
  if (flask !== undefined && (await has('flask')))
    return { web: `flask --app ${module}:${flask} run --host 0.0.0.0 --port $PORT` };
  if (/^[ \t]*(import|from)[ \t]+streamlit\b/m.test(text) && (await has('streamlit')))
    return { web: `streamlit run ${file} --server.port $PORT --server.address 0.0.0.0 --server.headless true` };
  return { web: `python ${file}` };
}

async function findMain(built: SourceTree): Promise<string | undefined> {
  for (const file of mainFiles) if (await built.hasFile(file)) return file;
  return undefined;
}

/** `app` of `app = Flask(__name__)`. */
function findVariable(text: string, classes: readonly string[]): string | undefined {
  const names = classes.map((name) => name.replace('.', '\\.')).join('|');
  return new RegExp(
    `^(\\w{1,80})(?:[ \\t]{0,9}:[ \\t]{0,9}\\w{1,80})?[ \\t]{0,9}=[ \\t]{0,9}(?:\\w{1,80}\\.)?(?:${names})\\(`,
    'm',
  ).exec(text)?.[1];
}

async function djangoCommand(built: SourceTree, gunicorn: boolean): Promise<string> {
  for (const name of gunicorn ? await built.list('') : []) {
    if (/^\w+$/.test(name) && (await built.hasFile(`${name}/wsgi.py`))) return `gunicorn ${name}.wsgi --bind 0.0.0.0:$PORT`;
  }
  return 'python manage.py runserver 0.0.0.0:$PORT';
}
