import createClient, { type Client } from 'openapi-fetch';
import type { paths } from '#api/openapi-types.ts';
import { failureOf, foreignAnswer, unreachable } from '#cli/api-errors.ts';

export type Api = Client<paths>;

/** Where the bearer token of a request comes from. */
export interface TokenSource {
  /** Undefined: the request goes out without one. */
  current(): Promise<string | undefined>;
  /** Another token after this one was refused; undefined when there is no other. */
  renew(refused: string): Promise<string | undefined>;
}

export const anonymous: TokenSource = {
  current: () => Promise.resolve(undefined),
  renew: () => Promise.resolve(undefined),
};

/** Sends a request with `headers` and its token, a second time with a new one when the first was refused. Fails as CliError where nothing answers. */
export type Send = (request: Request) => Promise<Response>;

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
    throw unreachable(host, error);
  }
  if (!isPlatformAnswer(response)) {
    await response.body?.cancel();
    throw foreignAnswer(host, response.status);
  }
  return response;
}

/** Something else may listen where the platform is looked for. */
function isPlatformAnswer(response: Response): boolean {
  return (
    response.status === 204 ||
    /^(application\/(json|.*\+json)|text\/event-stream)\b/.test(response.headers.get('content-type') ?? '')
  );
}

export function createApi(host: string, send: Send): Api {
  return createClient<paths>({ baseUrl: host, fetch: send });
}

/**
 * The JSON body of a successful answer; event streams are read by `follow`.
 * @throws CliError made of the error envelope otherwise
 */
export async function answerOf<Body>(
  call: Promise<{ data?: Body; error?: unknown; response: Response }>,
): Promise<Exclude<Body, string | undefined>> {
  const { data, error, response } = await call;
  if (response.ok && data !== undefined) return data as Exclude<Body, string | undefined>;
  throw failureOf(error, response);
}

/** For calls that answer without a body. */
export async function succeeded(call: Promise<{ error?: unknown; response: Response }>): Promise<void> {
  const { error, response } = await call;
  if (!response.ok) throw failureOf(error, response);
}
