import { BuildFailure } from '#shared/platform/build-failure.ts';
import type { Builder, Detection } from '../plans/builder.ts';
import { openSubtree, type SourceTree } from '../plans/source-tree.ts';
import { builders } from './builders.ts';
import { nodeBuilder } from './node/node.ts';
import { readPackageJson } from './node/package-json.ts';
import { procfileBuilder } from './procfile.ts';
import { describeUndetected } from './undetected.ts';

export interface Chosen {
  readonly builder: Builder;
  readonly detection: Detection;
}

export interface Choice {
  /** Starts the app, and builds last. */
  readonly main: Chosen;
  /** Others, in the order in which they build. */
  readonly before: readonly Chosen[];
  /** Others that need what the main one has installed. */
  readonly after?: readonly Chosen[];
}

/** Builders of whole languages: others look at single files that an app of any language may have. */
const languages = ['go', 'rust', 'java', 'ruby', 'php', 'python', 'elixir', 'gleam', 'dotnet', 'deno'];

/**
 * The builders of an app. Node.js builds the assets of an app in another
 * language, unless package.json has a "start" script: then it starts the app, and Python builds before it where there is a
 * requirements.txt.
 * @param named instead of detection
 * @param start the app's own command: with it a source that nothing builds is run as it is
 * @throws BuildFailure if there is nothing to detect
 */
export async function chooseBuilders(source: SourceTree, named?: string, start?: string): Promise<Choice> {
  const detected: Chosen[] = [];
  for (const builder of builders) {
    const detection = named === undefined || builder.name === named ? await builder.detect(source) : undefined;
    if (detection !== undefined) detected.push({ builder, detection });
  }
  const [first] = detected;
  if (first === undefined && named === undefined && start !== undefined)
    return { main: { builder: procfileBuilder, detection: { what: 'Plain app', why: 'a start command' } }, before: [] };
  if (first === undefined) {
    const names = builders.map((builder) => builder.looksFor).join(', ');
    throw new BuildFailure(await describeUndetected(source, (directory) => detectIn(source, directory), names));
  }
  const node = detected.find(({ builder }) => builder === nodeBuilder);
  const other = detected.find(({ builder }) => languages.includes(builder.name));
  if (node === undefined || other === undefined) return { main: first, before: [] };
  const scripts = (await readPackageJson(source))?.scripts ?? {};
  const startsNode = scripts['start'] !== undefined && !(await startsItself(source));
  if (startsNode)
    return other.builder.name === 'python' && (await source.hasFile('requirements.txt'))
      ? { main: node, before: [other] }
      : { main: node, before: [] };
  // A single file beside a package.json is a script of the Node.js app.
  if (/\.(py|go)$/.test(other.detection.why) && other.detection.why !== 'manage.py') return { main: node, before: [] };
  if (scripts['build'] === undefined) return { main: other, before: [] };
  // Assets of PHP import files of the packages in `vendor`.
  return other.builder.name === 'php' ? { main: other, before: [], after: [node] } : { main: other, before: [node] };
}

/** A framework of another language, whose package.json has a "start" script for something else. */
async function startsItself(source: SourceTree): Promise<boolean> {
  for (const file of ['manage.py', 'bin/rails', 'artisan', 'mix.exs']) if (await source.hasFile(file)) return true;
  return false;
}

/** The file by which a builder takes a directory of the source. */
async function detectIn(source: SourceTree, directory: string): Promise<string | undefined> {
  const below = openSubtree(source, directory);
  for (const builder of builders) {
    const detection = await builder.detect(below);
    if (detection !== undefined) return detection.why;
  }
  return undefined;
}
