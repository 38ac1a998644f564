import { type ApiOptions, createApi } from '#api/create-api.ts';
import type { Api } from '#api/http/api-env.ts';

/** The API with nothing behind its routes: enough to describe them, of no use to answer requests. */
export function createDocumentedApi(): Api {
  return createApi({
    services: {},
    issuer: '',
    metrics: { observeRequest: () => undefined },
  } as unknown as ApiOptions);
}
