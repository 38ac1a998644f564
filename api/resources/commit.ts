import { z } from '@hono/zod-openapi';
import { timestamp } from '#api/openapi/schemas.ts';
import type { PathView } from '#shared/core/repositories/commits.ts';
import type { CommitFacts, Comparison, Signature } from '#shared/git/git-storage.ts';

const oid = z.string().openapi({ example: '5478677ce1f0c0b3a1e34ea7a2b0b0e1a3f0c9d2' });
const SignatureSchema = z
  .object({
    name: z.string(),
    email: z.string(),
    at: timestamp,
    utc_offset_minutes: z.int().openapi({ description: 'Of the time zone, east of UTC.', example: 60 }),
  })
  .openapi('CommitSignature');

export const CommitSchema = z
  .object({
    oid,
    tree: oid,
    parents: z.array(oid),
    message: z.string().openapi({ example: 'Greet by name\n' }),
    author: SignatureSchema,
    committer: SignatureSchema,
  })
  .openapi('Commit');

export const ComparisonSchema = z
  .object({
    commits: z.array(CommitSchema).openapi({ description: 'Commits that the head has and the base does not, newest first.' }),
    files: z
      .array(z.object({ path: z.string(), change: z.enum(['added', 'modified', 'deleted']) }))
      .openapi({ description: 'Files that differ between base and head.' }),
    is_complete: z.boolean().openapi({ description: 'False if there are more than 250 commits or 1000 files.' }),
  })
  .openapi('Comparison');

export const PathSchema = z
  .object({
    path: z.string().openapi({ description: "'' for the root.", example: 'src' }),
    commit: oid,
    kind: z.enum(['directory', 'file', 'executable', 'symlink', 'submodule']),
    entries: z
      .array(z.object({ name: z.string(), kind: z.enum(['directory', 'file', 'executable', 'symlink', 'submodule']), oid }))
      .nullable()
      .openapi({ description: 'Of a directory; null otherwise.' }),
    size: z.int().nullable().openapi({ description: 'Bytes of a file; null for a directory.' }),
    encoding: z.enum(['utf-8', 'base64']).nullable(),
    content: z.string().nullable().openapi({ description: 'Of a file up to 1 MiB; null otherwise.' }),
  })
  .openapi('RepositoryPath');

/** A commit with its whole message. */
export function presentCommit({ oid: id, tree, parents, message, author, committer }: CommitFacts): z.infer<typeof CommitSchema> {
  return {
    oid: id,
    tree,
    parents: [...parents],
    message,
    author: presentSignature(author),
    committer: presentSignature(committer),
  };
}

function presentSignature({ name, email, at, utcOffsetMinutes }: Signature): z.infer<typeof SignatureSchema> {
  return { name, email, at: at.toISOString(), utc_offset_minutes: utcOffsetMinutes };
}

/** The commits and the files between two commits. */
export function presentComparison({ commits, files, isComplete }: Comparison): z.infer<typeof ComparisonSchema> {
  return { commits: commits.map(presentCommit), files: files.map((file) => ({ ...file })), is_complete: isComplete };
}

/** The entries of a directory, or the content of a file: as text, or in base64 where it is none. */
export function presentPath(view: PathView): z.infer<typeof PathSchema> {
  const { path, commit, kind } = view;
  if (view.kind === 'directory') {
    const entries = view.entries.map((entry) => ({ ...entry }));
    return { path, commit, kind, entries, size: null, encoding: null, content: null };
  }
  return { path, commit, kind, entries: null, size: view.bytes, ...encode(view.content) };
}

/** As text where the bytes are UTF-8. */
function encode(content: Uint8Array | undefined): { encoding: 'utf-8' | 'base64' | null; content: string | null } {
  if (content === undefined) return { encoding: null, content: null };
  try {
    return { encoding: 'utf-8', content: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content) };
  } catch {
    return { encoding: 'base64', content: new Uint8Array(content).toBase64() };
  }
}
