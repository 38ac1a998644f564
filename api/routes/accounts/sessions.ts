import { createRoute, z } from '@hono/zod-openapi';
import type { Api } from '#api/http/api-env.ts';
import {
  answer,
  bearer,
  dataOf,
  guarded,
  idParam,
  pageOf,
  pageQuery,
  presentPage,
  refusalsOf,
  toPageQuery,
} from '#api/openapi/schemas.ts';
import { EndedSessionsSchema, presentSession, SessionSchema } from '#api/resources/session.ts';
import type { Sessions } from '#shared/core/accounts/accounts.ts';

const tags = ['accounts'];

const listSessions = createRoute({
  method: 'get',
  path: '/v1/auth/sessions',
  operationId: 'listSessions',
  summary: 'List your sessions, newest first',
  description:
    'A login begins a session. It ends by logging out, by the routes below, or 30 days after its tokens were refreshed last.',
  tags,
  security: bearer,
  request: { query: pageQuery },
  responses: { 200: answer(pageOf(SessionSchema), 'A page of sessions.'), ...guarded, ...refusalsOf(422) },
});

const endSession = createRoute({
  method: 'delete',
  path: '/v1/auth/sessions/{session_id}',
  operationId: 'endSession',
  summary: 'End a session',
  tags,
  security: bearer,
  request: { params: idParam('session_id', 'Id of the session.') },
  responses: {
    204: {
      description:
        'Ended. Its refresh tokens and access tokens are refused from now on. Open event streams end within 30 seconds.',
    },
    ...guarded,
    ...refusalsOf(404),
  },
});

const flag = z.enum(['true', 'false']).default('false');

const endSessions = createRoute({
  method: 'delete',
  path: '/v1/auth/sessions',
  operationId: 'endSessions',
  summary: 'End all sessions',
  description:
    'Ends all sessions, or all others than the one of the request. Refresh tokens and access tokens are refused from now on. SSH keys ' +
    'and API tokens stay, unless you ask for their deletion. A `git push` that is running goes on.',
  tags,
  security: bearer,
  request: {
    query: z.object({
      which: z.enum(['all', 'others']).openapi({ description: '`others` keeps the session of this request.', example: 'others' }),
      ssh_keys: flag.openapi({ description: 'Delete all of your SSH keys, too.' }),
      api_tokens: flag.openapi({ description: 'Revoke all of your API tokens in all teams, too.' }),
    }),
  },
  responses: { 200: answer(dataOf(EndedSessionsSchema), 'Ended.'), ...guarded, ...refusalsOf(422) },
});

/** Adds the routes by which users see and end their sessions. */
export function addSessionRoutes(api: Api, sessions: Sessions): void {
  api.openapi(listSessions, async (c) => {
    const page = await sessions.listSessions(c.get('caller'), toPageQuery(c.req.valid('query')));
    return c.json(presentPage(page, presentSession), 200);
  });

  api.openapi(endSession, async (c) => {
    await sessions.endSession(c.get('caller'), c.req.valid('param').session_id);
    return c.body(null, 204);
  });

  api.openapi(endSessions, async (c) => {
    const { which, ssh_keys, api_tokens } = c.req.valid('query');
    const ended = await sessions.endSessions(c.get('caller'), {
      which,
      sshKeys: ssh_keys === 'true',
      apiTokens: api_tokens === 'true',
    });
    return c.json({ data: { sessions: ended.sessions, ssh_keys: ended.sshKeys, api_tokens: ended.apiTokens } }, 200);
  });
}
