import type { Context } from '#cli/context/context.ts';
import { answerOf } from '#shared/api-client/client.ts';

/** The app with this id or name. @throws ApiError `not_found` */
export async function readApp(context: Context, app: string) {
  const api = await context.api();
  return (await answerOf(api.GET('/v1/apps/{id}', { params: { path: { id: app } } }))).data;
}
