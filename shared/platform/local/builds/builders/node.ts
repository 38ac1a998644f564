import type { Builder, BuildPlan } from './builder.ts';
import { planNodeInstall } from './node-package-managers.ts';
import { type PackageJson, parsePackageJson } from './package-json.ts';
import type { SourceTree } from './source-tree.ts';

export const nodeBuilder: Builder = {
  name: 'node',
  looksFor: 'package.json (Node.js)',
  async detect(source) {
    return (await source.hasFile('package.json')) ? { what: 'Node.js app', why: 'package.json' } : undefined;
  },
  async plan(source, context) {
    const manifest = parsePackageJson((await source.readText('package.json')) ?? '');
    const range = manifest.engines?.node;
    const node = await context.toolchains.findNode(range);
    const install = await planNodeInstall(source, manifest, { node: node.version, cache: context.cache });
    const hasBuildScript = manifest.scripts?.build !== undefined;
    return {
      notes: [`Using Node.js ${node.version}${range === undefined ? '' : ` (package.json asks for ${range})`}`, ...install.notes],
      steps: [
        ...install.steps,
        ...(hasBuildScript ? [{ title: `${install.manager} run build`, argv: [...install.command, 'run', 'build'] }] : []),
        ...install.prune,
      ],
      env: { NODE_ENV: 'production', npm_config_update_notifier: 'false', ...install.env },
      path: node.path,
      toolchain: node.mounts,
      cacheDirectories: install.cacheDirectories,
      ...(install.tree === undefined ? {} : { tree: install.tree }),
      // What the app writes beside its code has a limit of its own, which npm's files shall not use up.
      runtimeEnv: {
        NODE_ENV: 'production',
        npm_config_cache: '/tmp/.npm',
        npm_config_update_notifier: 'false',
        npm_config_logs_max: '0',
      },
      defaultProcesses: (built) => findDefaultProcesses(built, manifest),
      processHint:
        'package.json has no "start" script, and there is no server.js, index.js or app.js. Add "scripts": {"start": "node <your file>"}, or a Procfile with a line as: web: node <your file>',
    } satisfies BuildPlan;
  },
};

async function findDefaultProcesses(built: SourceTree, manifest: PackageJson): Promise<Readonly<Record<string, string>>> {
  if (manifest.scripts?.start !== undefined) return { web: 'npm start' };
  for (const file of [manifest.main, 'server.js', 'index.js', 'app.js']) {
    if (file !== undefined && /^[\w./-]+$/.test(file) && (await built.hasFile(file))) return { web: `node ${file}` };
  }
  return {};
}
