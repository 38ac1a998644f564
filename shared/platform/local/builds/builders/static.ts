import JSON5 from 'json5';
import { z } from 'zod';
import type { Builder } from '../plans/builder.ts';
import { emptyPlan } from '../plans/empty-plan.ts';
import type { SourceTree } from '../plans/source-tree.ts';
import { staticProcess, staticServerMounts } from '../plans/static-process.ts';

/** A directory that is served as it is. */
interface Site {
  /** Relative to the app; '.' for the app itself. */
  readonly root: string;
  readonly why: string;
  readonly fallback: boolean;
}

export const staticBuilder: Builder = {
  name: 'static',
  looksFor: 'Staticfile or index.html (static files)',
  async detect(source) {
    // A Procfile says that the app brings a server of its own.
    const site = (await source.hasFile('Procfile')) ? undefined : await findSite(source);
    return site === undefined ? undefined : { what: 'Static site', why: site.why };
  },
  async plan(source) {
    const site = (await findSite(source)) ?? { root: '.', fallback: false };
    return {
      ...emptyPlan,
      notes: [...emptyPlan.notes, ...(site.root === '.' ? [] : [`Serving the directory ${site.root}`])],
      toolchain: staticServerMounts,
      defaultProcesses: async () => staticProcess(site.root, site),
    };
  },
};

const settingsOfHeroku = z.looseObject({ root: z.string().optional(), routes: z.record(z.string(), z.unknown()).optional() });

/** By a Staticfile (`root: dist`, `index_fallback: true`) or a static.json (`{"root": "dist", "routes": {"/**": "index.html"}}`), else where an index.html is. */
async function findSite(source: SourceTree): Promise<Site | undefined> {
  const settings = await source.readText('Staticfile');
  if (settings !== undefined)
    return {
      root: toRoot(/^root:\s*["']?([\w./-]+)/m.exec(settings)?.[1]),
      why: 'Staticfile',
      fallback: /^(index_fallback|pushstate):\s*(true|enabled)/m.test(settings),
    };
  const heroku = parseSettings(await source.readText('static.json'));
  if (heroku !== undefined)
    return {
      root: toRoot(heroku.root ?? ((await source.hasFile('public_html/index.html')) ? 'public_html' : undefined)),
      why: 'static.json',
      fallback: Object.values(heroku.routes ?? {}).some((file) => /^\/?index\.html$/.test(String(file))),
    };
  for (const root of ['.', 'public', 'dist', 'site', '_site', 'www', 'htdocs', 'public_html', 'app/public']) {
    const index = root === '.' ? 'index.html' : `${root}/index.html`;
    if (await source.hasFile(index)) return { root, why: index, fallback: false };
  }
  return undefined;
}

/** A directory of the app; the app itself for any other. */
function toRoot(path: string | undefined): string {
  const root = path?.replace(/^\.\/|\/$/g, '') ?? '.';
  return /^[\w][\w./-]*$/.test(root) && !root.split('/').includes('..') ? root : '.';
}

/** Undefined where there are none, or what is no file of the site's settings. */
function parseSettings(text: string | undefined): z.infer<typeof settingsOfHeroku> | undefined {
  if (text === undefined) return undefined;
  try {
    return settingsOfHeroku.safeParse(JSON5.parse(text)).data;
  } catch {
    return undefined;
  }
}
