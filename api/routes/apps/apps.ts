import { createRoute, z } from '@hono/zod-openapi';
import { type Api, newResourceId } from '#api/http/api-env.ts';
import {
  answer,
  appParams,
  bearer,
  dataOf,
  guarded,
  idempotencyHeader,
  jsonBody,
  lineOf,
  pageOf,
  pageQuery,
  presentPage,
  refusalsOf,
  toPageQuery,
  withBody,
} from '#api/openapi/schemas.ts';
import { AppSchema, presentApp } from '#api/resources/app.ts';
import type { AppDeletion, Apps } from '#shared/core/apps/apps.ts';
import type { GitSources } from '#shared/core/repositories/git-sources.ts';
import type { AppId } from '#shared/ids.ts';

const tags = ['apps'];
const gitUrl = lineOf(2000).nullable();
const branch = lineOf(255).min(1);
const App = dataOf(AppSchema);

const createApp = createRoute({
  method: 'post',
  path: '/v1/apps',
  operationId: 'createApp',
  summary: 'Create an app',
  tags,
  security: bearer,
  request: {
    headers: idempotencyHeader,
    body: jsonBody(
      z.object({
        name: lineOf(100)
          .optional()
          .openapi({ description: 'Name and subdomain of the app. Default: a generated name.', example: 'hello' }),
        git_url: gitUrl.optional().openapi({ description: 'Default: the repository of the app on this platform.' }),
        branch: branch.optional().openapi({ description: 'The branch that is deployed. Default: `main`.', example: 'main' }),
      }),
      false,
    ),
  },
  responses: { 201: answer(App, 'Created.'), ...guarded, ...withBody, ...refusalsOf(409) },
});

const listApps = createRoute({
  method: 'get',
  path: '/v1/apps',
  operationId: 'listApps',
  summary: 'List apps, newest first',
  tags,
  security: bearer,
  request: {
    query: pageQuery.extend({
      deleted: z
        .enum(['true', 'false'])
        .default('false')
        .openapi({ description: '`true`: list deleted apps that can be restored.' }),
    }),
  },
  responses: { 200: answer(pageOf(AppSchema), 'A page of apps.'), ...guarded, ...refusalsOf(422) },
});

const readApp = createRoute({
  method: 'get',
  path: '/v1/apps/{id}',
  operationId: 'readApp',
  summary: 'Get an app',
  tags,
  security: bearer,
  request: { params: appParams },
  responses: { 200: answer(App, 'The app.'), ...guarded, ...refusalsOf(404) },
});

const deleteApp = createRoute({
  method: 'delete',
  path: '/v1/apps/{id}',
  operationId: 'deleteApp',
  summary: 'Delete an app',
  description: 'A deleted app can be restored for 30 days, and keeps its name meanwhile.',
  tags,
  security: bearer,
  request: {
    params: appParams,
    query: z.object({
      purge: z
        .enum(['true', 'false'])
        .default('false')
        .openapi({
          description:
            '`true`: remove the app with its repository, releases, logs and add-ons for good, also one that is deleted already. It cannot be ' +
            'restored. Its name is free when the app is not found any more, some seconds later.',
        }),
    }),
  },
  responses: { 200: answer(App, 'Deleted.'), ...guarded, ...refusalsOf(404, 422) },
});

const restoreApp = createRoute({
  method: 'post',
  path: '/v1/apps/{id}/restore',
  operationId: 'restoreApp',
  summary: 'Restore a deleted app',
  tags,
  security: bearer,
  request: { params: appParams },
  responses: { 200: answer(App, 'Restored.'), ...guarded, ...refusalsOf(404, 409) },
});

const setGitSource = createRoute({
  method: 'put',
  path: '/v1/apps/{id}/git',
  operationId: 'setGitSource',
  summary: 'Set the git source and the branch that is deployed',
  tags,
  security: bearer,
  request: {
    params: appParams,
    body: jsonBody(
      z.object({
        url: gitUrl.openapi({ description: 'Null removes the source.', example: 'https://git.example.com/ada/hello.git' }),
        branch: branch.optional().openapi({
          description:
            'The branch that is deployed. Default: the default branch of the repository, or unchanged when its host does not say.',
          example: 'main',
        }),
        token: lineOf(1200)
          .nullable()
          .optional()
          .openapi({
            description:
              'A token of the git host that can read the repository, or `user:token`. It is stored sealed, never shown, and sent to the host ' +
              'of `url` only. Left out: the one there is stays for the same host. Null removes it.',
          }),
      }),
      true,
    ),
  },
  responses: { 200: answer(App, 'Set.'), ...guarded, ...withBody, ...refusalsOf(404) },
});

/** What the routes of apps ask of core. */
interface AppServices {
  apps: Apps;
  deletion: AppDeletion;
  sources: Pick<GitSources, 'setGitSource'>;
}

/** Adds the routes of apps, of their deletion and of the repository they follow. */
export function addAppRoutes(api: Api, { apps, deletion, sources }: AppServices): void {
  api.openapi(createApp, async (c) => {
    const { name, git_url, branch: deployed } = c.req.valid('json');
    const app = await apps.createApp(c.get('caller'), {
      ...newResourceId<AppId>(c),
      name,
      gitUrl: git_url,
      branch: deployed,
    });
    return c.json({ data: presentApp(app) }, 201);
  });

  api.openapi(listApps, async (c) => {
    const query = c.req.valid('query');
    const page = await apps.listApps(c.get('caller'), { ...toPageQuery(query), deleted: query.deleted === 'true' });
    return c.json(presentPage(page, presentApp), 200);
  });

  api.openapi(readApp, async (c) => {
    return c.json({ data: presentApp(await apps.readApp(c.get('caller'), c.req.valid('param').id)) }, 200);
  });

  api.openapi(deleteApp, async (c) => {
    const purge = c.req.valid('query').purge === 'true';
    return c.json({ data: presentApp(await deletion.deleteApp(c.get('caller'), c.req.valid('param').id, { purge })) }, 200);
  });

  api.openapi(restoreApp, async (c) => {
    return c.json({ data: presentApp(await deletion.restoreApp(c.get('caller'), c.req.valid('param').id)) }, 200);
  });

  api.openapi(setGitSource, async (c) => {
    const { url, branch: deployed, token } = c.req.valid('json');
    const source = { url, branch: deployed, token };
    return c.json({ data: presentApp(await sources.setGitSource(c.get('caller'), c.req.valid('param').id, source)) }, 200);
  });
}
