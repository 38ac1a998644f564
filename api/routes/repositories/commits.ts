import { createRoute, z } from '@hono/zod-openapi';
import type { Api } from '#api/http/api-env.ts';
import { answer, appParams, bearer, dataOf, guarded, refusalsOf } from '#api/openapi/schemas.ts';
import {
  CommitSchema,
  ComparisonSchema,
  PathSchema,
  presentCommit,
  presentComparison,
  presentPath,
} from '#api/resources/commit.ts';
import type { Commits } from '#shared/core/repositories/commits.ts';

const tags = ['repositories'];
const longestRevision = 255;
/** What git allows in the names of refs: no blanks, control characters and characters that revisions are written with. */
const nameCharacter = String.raw`[^\x00-\x20\x7f~^:?*[\\]`;
const revisionPattern = new RegExp(`^${nameCharacter}+$`);
/** Neither name starts with a dot, so that the three dots between them are found. */
const rangePattern = new RegExp(String.raw`^(?!\.)${nameCharacter}+\.\.\.(?!\.)${nameCharacter}+$`);

const revision = (name: string, description: string) =>
  z
    .string()
    .regex(revisionPattern)
    .max(longestRevision)
    .openapi({ param: { name, in: 'path' }, description, example: 'main' });
const shape = 'Branch, tag or id of a commit in 40 hex digits; `/` in a name is written `%2F`.';

const readCommit = createRoute({
  method: 'get',
  path: '/v1/apps/{id}/commits/{revision}',
  operationId: 'readCommit',
  summary: 'Get a commit',
  tags,
  security: bearer,
  request: { params: appParams.extend({ revision: revision('revision', shape) }) },
  responses: { 200: answer(dataOf(CommitSchema), 'The commit.'), ...guarded, ...refusalsOf(404, 422) },
});

const readPath = createRoute({
  method: 'get',
  path: '/v1/apps/{id}/tree/{revision}',
  operationId: 'readPath',
  summary: 'Get a directory or a file of a commit',
  tags,
  security: bearer,
  request: {
    params: appParams.extend({ revision: revision('revision', shape) }),
    query: z.object({
      path: z
        .string()
        .max(4096)
        .regex(/^[^\x00]*$/)
        .optional()
        .openapi({ description: 'From the root. Default: the root itself.', example: 'src' }),
    }),
  },
  responses: { 200: answer(dataOf(PathSchema), 'The directory or file.'), ...guarded, ...refusalsOf(404, 422) },
});

const compare = createRoute({
  method: 'get',
  path: '/v1/apps/{id}/compare/{range}',
  operationId: 'compareCommits',
  summary: 'Compare two commits',
  tags,
  security: bearer,
  request: {
    params: appParams.extend({
      range: z
        .string()
        .regex(rangePattern)
        .max(2 * longestRevision + 3)
        .openapi({ param: { name: 'range', in: 'path' }, description: `\`base...head\`. ${shape}`, example: 'v1...main' }),
    }),
  },
  responses: {
    200: answer(dataOf(ComparisonSchema), 'What the head has and the base does not.'),
    ...guarded,
    ...refusalsOf(404, 422),
  },
});

/** Adds the routes that show commits of an app's repository. */
export function addCommitRoutes(api: Api, commits: Commits): void {
  api.openapi(readCommit, async (c) => {
    const { id, revision: name } = c.req.valid('param');
    return c.json({ data: presentCommit(await commits.readCommit(c.get('caller'), id, name)) }, 200);
  });

  api.openapi(readPath, async (c) => {
    const { id, revision: name } = c.req.valid('param');
    const { path = '' } = c.req.valid('query');
    return c.json({ data: presentPath(await commits.readPath(c.get('caller'), id, name, path)) }, 200);
  });

  api.openapi(compare, async (c) => {
    const { id, range } = c.req.valid('param');
    const [base = '', head = ''] = range.split('...');
    return c.json({ data: presentComparison(await commits.compare(c.get('caller'), id, base, head)) }, 200);
  });
}
