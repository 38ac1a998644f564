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

/** By a Staticfile (`root: dist`, `index_fallback: true`), else where an index.html is. */
async function findSite(source: SourceTree): Promise<Site | undefined> {
  const settings = await source.readText('Staticfile');
  if (settings !== undefined) {
    const root = /^root:\s*["']?([\w./-]+)/m.exec(settings)?.[1]?.replace(/^\.\/|\/$/g, '') ?? '.';
    const safe = root !== '' && !root.startsWith('/') && !root.split('/').includes('..');
    return {
      root: safe ? root : '.',
      why: 'Staticfile',
      fallback: /^(index_fallback|pushstate):\s*(true|enabled)/m.test(settings),
    };
  }
  for (const root of ['.', 'public', 'dist', 'site', '_site']) {
    const index = root === '.' ? 'index.html' : `${root}/index.html`;
    if (await source.hasFile(index)) return { root, why: index, fallback: false };
  }
  return undefined;
}
