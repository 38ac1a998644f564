import type { GitReader } from '#shared/git/repository.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';
import type { OpenSource, SourceEntry } from '#shared/platform/platform.ts';

const lfsPointer = new TextEncoder().encode('version https://git-lfs.github.com/spec/v1');

/** The tree of a commit as a build takes it. What git keeps elsewhere is told to the person who pushed. */
export function gitSource(
  reader: GitReader,
  repositoryId: RepositoryId,
  commit: ObjectId,
  tell: (line: string) => void,
): OpenSource {
  return async function* openSource(): AsyncGenerator<SourceEntry> {
    for await (const entry of reader.readTree(repositoryId, commit)) {
      if (entry.kind === 'submodule') {
        tell(` !     ${entry.path} is a git submodule; its files are not built. Add them to the repository itself.`);
        continue;
      }
      const content = await entry.read();
      if (startsWith(content, lfsPointer)) {
        tell(
          ` !     ${entry.path} is a git-lfs pointer, not the file. Run \`git lfs migrate export --include="${entry.path}"\`.`,
        );
      }
      yield { path: entry.path, kind: entry.kind, content };
    }
  };
}

function startsWith(content: Uint8Array, prefix: Uint8Array): boolean {
  return prefix.every((byte, index) => content[index] === byte);
}
