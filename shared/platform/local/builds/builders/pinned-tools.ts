import { BuildFailure } from '#shared/platform/build-failure.ts';
import type { Toolchain } from '../../toolchains/toolchain.ts';
import type { Toolchains } from '../../toolchains/toolchains.ts';
import { describeVersion } from '../plans/describe-version.ts';
import type { VersionPins } from '../plans/version-pins.ts';

export interface PinnedTools {
  readonly notes: readonly string[];
  readonly path: Toolchain['path'];
  readonly toolchain: Toolchain['mounts'];
}

/** Files that list all tools of an app. Those of one version manager belong to the app's own language. */
const listsOfTools = /(^railpack\.json|mise.*\.toml|config\.toml|\.tool-versions)$/;

/**
 * Tools that an app asks for beside its own language, for its build and its start. One that cannot be had does not fail the build: the app may
 * not need it here.
 */
export async function findPinnedTools(toolchains: Toolchains, pins: VersionPins, has: ReadonlySet<string>): Promise<PinnedTools> {
  const notes: string[] = [];
  const found: Toolchain[] = [];
  for (const [name, request] of pins) {
    if (has.has(name) || !listsOfTools.test(request.source)) continue;
    const find = finders[name];
    if (find === undefined) {
      notes.push(`Not installed: ${name} (${request.source}). This platform does not have this tool.`);
      continue;
    }
    try {
      const tool = await find(toolchains, request);
      found.push(tool);
      notes.push(describeVersion(name, tool.version, request));
    } catch (error) {
      if (!(error instanceof BuildFailure)) throw error;
      notes.push(`Without ${name}: ${error.message}`);
    }
  }
  return { notes, path: found.flatMap(({ path }) => path), toolchain: found.flatMap(({ mounts }) => mounts) };
}

type Find = (toolchains: Toolchains, request: { version: string; source: string }) => Promise<Toolchain>;

const finders: Readonly<Record<string, Find>> = {
  node: (toolchains, request) => toolchains.findNode(request),
  python: (toolchains, request) => toolchains.findPython([request]),
  go: (toolchains, request) => toolchains.findGo(request),
  rust: (toolchains, request) => toolchains.findRust(request),
  java: (toolchains, request) => toolchains.findJava(request),
  bun: (toolchains, request) => toolchains.findTool('bun', request),
  deno: (toolchains, request) => toolchains.findTool('deno', request),
  pnpm: (toolchains, request) => toolchains.findTool('pnpm', request),
  uv: (toolchains, request) => toolchains.findTool('uv', request),
};
