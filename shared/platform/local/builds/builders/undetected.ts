/** What to say of a source that no builder takes. */
import type { SourceTree } from '../plans/source-tree.ts';

/** Files of languages without a builder. A name may begin with `*`. */
const unsupportedLanguages: readonly (readonly [file: string, language: string])[] = [
  ['build.sbt', 'Scala'],
  ['project.clj', 'Clojure'],
  ['deps.edn', 'Clojure'],
  ['stack.yaml', 'Haskell'],
  ['cabal.project', 'Haskell'],
  ['*.cabal', 'Haskell'],
  ['shard.yml', 'Crystal'],
  ['Package.swift', 'Swift'],
  ['pubspec.yaml', 'Dart'],
  ['build.zig', 'Zig'],
  ['*.nimble', 'Nim'],
  ['dune-project', 'OCaml'],
  ['rebar.config', 'Erlang'],
  ['Project.toml', 'Julia'],
  ['cpanfile', 'Perl'],
  ['Makefile.PL', 'Perl'],
  ['renv.lock', 'R'],
  ['*.rockspec', 'Lua'],
  ['environment.yml', 'conda'],
  ['Makefile', 'make'],
];

/** The language without a builder that the source is in, with the file that tells: 'Scala (build.sbt)'. */
export async function findUnsupported(source: SourceTree): Promise<string | undefined> {
  const names = await source.list('');
  for (const [pattern, language] of unsupportedLanguages) {
    const name = names.find((entry) => (pattern.startsWith('*') ? entry.endsWith(pattern.slice(1)) : entry === pattern));
    if (name !== undefined && (await source.hasFile(name))) return `${language} (${name})`;
  }
  return undefined;
}

/**
 * The language that the source is in and that cannot be built, or the directories below the top that could be.
 * @param detects whether a builder takes a directory: the file that it goes by
 * @param looksFor what builders go by, for a source without any of it
 */
export async function describeUndetected(
  source: SourceTree,
  detects: (directory: string) => Promise<string | undefined>,
  looksFor: string,
): Promise<string> {
  const names = await source.list('');
  if (names.length === 0) return 'The source is empty. Commit the files of the app, then push.';
  const unsupported = await findUnsupported(source);
  if (unsupported !== undefined)
    return `This platform has no builder for ${unsupported}. It builds: ${looksFor}. A program that you have built for Linux can be committed with a Procfile: web: ./<program>`;
  const below: string[] = [];
  for (const name of names.slice(0, 100)) {
    const why = name.startsWith('.') || name === 'node_modules' ? undefined : await detects(name);
    if (why !== undefined) below.push(`${name}/${why}`);
  }
  if (below.length > 0)
    return `No language detected at the top of the source, but there is ${below.slice(0, 5).join(', ')}. Say which directory is the app: paas settings:set directory=${below[0]?.split('/')[0]}`;
  return `No language detected at the top of the source. Looked for: ${looksFor}. Add one of them.`;
}
