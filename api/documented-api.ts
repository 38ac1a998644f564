import { type ApiOptions, createApi } from '#api/create-api.ts';
import type { Api } from '#api/http/api-env.ts';

/** The API without services: for its OpenAPI document. It cannot answer requests. */
export function createDocumentedApi(): Api {
  return createApi({
    services: {},
    issuer: '',
    allowedOrigins: [],
    metrics: { observeRequest: () => undefined },
  } as unknown as ApiOptions);
}
