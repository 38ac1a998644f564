import JSON5 from 'json5';
import { z } from 'zod';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import type { Builder } from '../plans/builder.ts';
import { describeVersion } from '../plans/describe-version.ts';
import type { SourceTree } from '../plans/source-tree.ts';
import { treeKey } from '../plans/tree-key.ts';

const manifests = ['deno.json', 'deno.jsonc'] as const;
/** Without a package.json they are nothing else's. */
const scripts = ['main.ts', 'mod.ts', 'server.ts', 'index.ts', 'app.ts'] as const;
const schema = z.looseObject({ tasks: z.record(z.string(), z.unknown()).optional() });
/** What Deno downloads is read at run time as well, so it is in the app. */
const cache = '.deno';

export const denoBuilder: Builder = {
  name: 'deno',
  looksFor: 'deno.json (Deno)',
  async detect(source) {
    const other = (await source.hasFile('index.html')) || (await source.hasFile('package.json'));
    for (const why of [...manifests, 'deno.lock', ...(other ? [] : scripts)])
      if (await source.hasFile(why)) return { what: 'Deno app', why };
    return undefined;
  },
  async plan(source, context) {
    const [name, text] = await readManifest(source);
    const tasks = parseTasks(name, text);
    const main = await findMain(source);
    const request = context.pins.get('deno');
    const deno = await context.toolchains.findTool('deno', request ?? { version: 'latest', source: name });
    const lock = await source.readText('deno.lock');
    const key = treeKey(deno.version, text, lock);
    const steps = [
      ...(main === undefined
        ? []
        : [{ title: `deno cache ${main}, cache ${context.cache}`, argv: ['deno', 'cache', main], savesTree: true }]),
      ...(tasks.includes('build') ? [{ title: 'deno task build', argv: ['deno', 'task', 'build'], builds: true } as const] : []),
    ];
    return {
      notes: [describeVersion('Deno', deno.version, request)],
      steps,
      env: { DENO_DIR: `/app/${cache}`, DENO_NO_UPDATE_CHECK: '1' },
      path: deno.path,
      toolchain: deno.mounts,
      cacheDirectories: [],
      tree: { paths: [cache], key },
      runtimeEnv: { DENO_DIR: `/app/${cache}`, DENO_NO_UPDATE_CHECK: '1' },
      async defaultProcesses() {
        const command = tasks.includes('start')
          ? 'deno task start'
          : main === undefined
            ? undefined
            : `deno run --allow-all ${main}`;
        // `Deno.serve` listens on 8000 unless this says otherwise.
        return command === undefined ? {} : { web: `DENO_SERVE_ADDRESS=tcp:0.0.0.0:$PORT ${command}` };
      },
      processHint: `${name} has no task "start", and there is no main.ts. Add one, or a Procfile with a line as: web: deno run --allow-all <your file>`,
    };
  },
};

async function readManifest(source: SourceTree): Promise<readonly [name: string, text: string]> {
  for (const name of manifests) {
    const text = await source.readText(name);
    if (text !== undefined) return [name, text];
  }
  return ['deno.json', '{}'];
}

/** @throws BuildFailure if the file is not valid */
function parseTasks(name: string, text: string): readonly string[] {
  try {
    return Object.keys(schema.parse(JSON5.parse(text)).tasks ?? {});
  } catch (error) {
    throw new BuildFailure(`${name} is not valid: ${error instanceof Error ? error.message.split('\n')[0] : String(error)}`);
  }
}

async function findMain(source: SourceTree): Promise<string | undefined> {
  for (const name of [...scripts, 'main.js', 'main.mjs', 'main.mts', 'src/main.ts', 'src/index.ts', 'src/server.ts'])
    if (await source.hasFile(name)) return name;
  return undefined;
}
