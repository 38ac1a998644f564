import type { SourceTree } from '../../plans/source-tree.ts';

/** A project of Django. */
export interface Django {
  /** Where manage.py is, relative to the app; '' for the app itself. */
  readonly directory: string;
  /** Whether the settings say where static files are collected; 'perhaps' if only under a condition. */
  readonly collectsStatic: 'yes' | 'perhaps' | 'no';
  /** @param has whether a program is installed */
  command(has: (program: string) => Promise<boolean>): Promise<string>;
}

/** At the top of the source, or one directory below it. */
export async function findDjango(source: SourceTree): Promise<Django | undefined> {
  const directory = await findManage(source);
  if (directory === undefined) return undefined;
  const inside = (path: string): string => (directory === '' ? path : `${directory}/${path}`);
  const enter = directory === '' ? '' : `cd ${directory} && `;
  const packages = (await source.list(directory)).filter((name) => /^\w+$/.test(name));
  const findModule = async (name: string): Promise<string | undefined> => {
    for (const each of packages) if (await source.hasFile(inside(`${each}/${name}.py`))) return `${each}.${name}`;
    return undefined;
  };
  return {
    directory,
    collectsStatic: await setsStaticRoot(source, packages.map(inside)),
    async command(has) {
      const [wsgi, asgi] = [await findModule('wsgi'), await findModule('asgi')];
      if (wsgi !== undefined && (await has('gunicorn'))) return `${enter}gunicorn ${wsgi} --bind 0.0.0.0:$PORT`;
      if (asgi !== undefined && (await has('uvicorn'))) return `${enter}uvicorn ${asgi}:application --host 0.0.0.0 --port $PORT`;
      if (asgi !== undefined && (await has('daphne'))) return `${enter}daphne --bind 0.0.0.0 --port $PORT ${asgi}:application`;
      if (wsgi !== undefined && (await has('waitress-serve')))
        return `${enter}waitress-serve --listen=0.0.0.0:$PORT ${wsgi}:application`;
      return `${enter}python manage.py runserver 0.0.0.0:$PORT`;
    },
  };
}

async function findManage(source: SourceTree): Promise<string | undefined> {
  if (await source.hasFile('manage.py')) return '';
  for (const name of (await source.list('')).filter((each) => /^[\w-]+$/.test(each)).slice(0, 100))
    if (await source.hasFile(`${name}/manage.py`)) return name;
  return undefined;
}

async function setsStaticRoot(source: SourceTree, packages: readonly string[]): Promise<Django['collectsStatic']> {
  const files = ['settings.py', 'settings/__init__.py', 'settings/base.py', 'settings/common.py', 'settings/production.py'];
  let found: Django['collectsStatic'] = 'no';
  for (const directory of packages)
    for (const file of files) {
      const text = (await source.readText(`${directory}/${file}`)) ?? '';
      if (/^STATIC_ROOT[ \t]*=/m.test(text)) return 'yes';
      if (/^[ \t]*STATIC_ROOT[ \t]*=/m.test(text)) found = 'perhaps';
    }
  return found;
}
