import { type Api, answerOf } from '#shared/api-client/client.ts';
import { eachItem, firstItems } from '#shared/api-client/pages.ts';

/** All SSH keys of the current user. */
export function listKeys(api: Api) {
  return firstItems(eachItem((query) => answerOf(api.GET('/v1/auth/ssh-keys', { params: { query } }))));
}
