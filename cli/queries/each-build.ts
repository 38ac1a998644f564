import { type Api, answerOf } from '#shared/api-client/client.ts';
import { eachItem } from '#shared/api-client/pages.ts';

/** All builds of an app, newest first. */
export function eachBuild(api: Api, app: string) {
  return eachItem((query) => answerOf(api.GET('/v1/apps/{id}/builds', { params: { path: { id: app }, query } })));
}
