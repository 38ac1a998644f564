import { type Api, answerOf } from '#shared/api-client/client.ts';
import { eachItem } from '#shared/api-client/pages.ts';

/** All releases of an app, newest first. */
export function eachRelease(api: Api, app: string) {
  return eachItem((query) => answerOf(api.GET('/v1/apps/{id}/releases', { params: { path: { id: app }, query } })));
}
