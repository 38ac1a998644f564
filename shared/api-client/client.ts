import createClient, { type Client } from 'openapi-fetch';
import { apiErrorOf, ForeignAnswerError, UnreachableError } from '#shared/api-client/api-error.ts';
import type { paths } from '#shared/api-client/openapi-types.ts';

/** A client with a typed method for each route of the OpenAPI document. */
export type Api = Client<paths>;

/** Where the bearer token of a request comes from. */
export interface TokenSource {
  /** Undefined: the request is sent without a token. */
  current(): Promise<string | undefined>;
  /** Another token after this one was refused. Undefined when there is no other. */
  renew(refused: string): Promise<string | undefined>;
}

/** For requests without a token. */
export const anonymous: TokenSource = {
  current: () => Promise.resolve(undefined),
  renew: () => Promise.resolve(undefined),
};

/**
 * Sends one request to the platform.
 * @throws UnreachableError when no answer comes
 * @throws ForeignAnswerError when the answer does not come from a platform
 */
export type Send = (request: Request) => Promise<Response>;

/**
 * Adds a token and `headers` to each request. A request whose token is refused is sent once more with a renewed token.
 * @param host base URL of the platform, without a trailing slash
 */
export function createSend(host: string, tokens: TokenSource, headers: Readonly<Record<string, string>>): Send {
  return async (request) => {
    for (const [name, value] of Object.entries(headers)) request.headers.set(name, value);
    const token = await tokens.current();
    const first = await sendWith(token, request.clone(), host);
    if (first.status !== 401 || token === undefined) return first;
    const renewed = await tokens.renew(token);
    if (renewed === undefined) return first;
    await first.body?.cancel();
    return sendWith(renewed, request, host);
  };
}

async function sendWith(token: string | undefined, request: Request, host: string): Promise<Response> {
  if (token !== undefined) request.headers.set('authorization', `Bearer ${token}`);
  let response: Response;
  try {
    // A redirect could carry the token elsewhere, and the platform never sends one.
    response = await fetch(request, { redirect: 'error' });
  } catch (error) {
    if (request.signal.aborted) throw error;
    throw new UnreachableError(host, error);
  }
  if (!isPlatformAnswer(response)) {
    await response.body?.cancel();
    throw new ForeignAnswerError(host, response.status);
  }
  return response;
}

function isPlatformAnswer(response: Response): boolean {
  return (
    response.status === 204 ||
    /^(application\/(json|.*\+json)|text\/event-stream)\b/.test(response.headers.get('content-type') ?? '')
  );
}

/** @param host base URL of the platform, without a trailing slash */
export function createApi(host: string, send: Send): Api {
  return createClient<paths>({ baseUrl: host, fetch: send });
}

/**
 * The JSON body of a successful answer. Event streams are read by `follow`.
 * @throws ApiError when the API refuses
 */
export async function answerOf<Body>(
  call: Promise<{ data?: Body; error?: unknown; response: Response }>,
): Promise<Exclude<Body, string | undefined>> {
  const { data, error, response } = await call;
  if (response.ok && data !== undefined) return data as Exclude<Body, string | undefined>;
  throw apiErrorOf(error, response);
}

/**
 * For calls that answer without a body.
 * @throws ApiError when the API refuses
 */
export async function succeeded(call: Promise<{ error?: unknown; response: Response }>): Promise<void> {
  const { error, response } = await call;
  if (!response.ok) throw apiErrorOf(error, response);
}
