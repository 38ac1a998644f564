/** A response of the gateway itself. Rendered as a page, as text or as the API's error envelope, by the Accept header. */
export interface ErrorResponse {
  readonly status: number;
  /** Code of the error envelope. */
  readonly code: 'not_found' | 'internal' | 'validation_failed' | 'rate_limited';
  readonly title: string;
  /** What is wrong, in one sentence. */
  readonly message: string;
  /** What to do about it. Text in backticks is a command. */
  readonly advice?: string;
  readonly retryAfterSeconds?: number;
  /** The methods that are supported, when another was used. */
  readonly allow?: string;
  /** For clients of the API, which read JSON whatever their Accept header. */
  readonly alwaysJson?: boolean;
}

/** For a host below the apps' domain that no app has. */
export function noSuchApp(host: string): ErrorResponse {
  return {
    status: 404,
    code: 'not_found',
    title: 'There is no app at this address',
    message: `No app has the host ${host}.`,
    advice: 'Check the address, or create the app: `paas create`',
  };
}

/** For a host that belongs neither to an app nor to the platform. */
export function noSuchHost(host: string): ErrorResponse {
  return {
    status: 404,
    code: 'not_found',
    title: 'There is nothing at this address',
    message: `Neither an app nor the platform has the host ${host}.`,
    advice: 'If this is the address of the platform, its operator must set `PAAS_BASE_URL` to it.',
  };
}

/** For an app none of whose releases has ever been live. */
export function notDeployed(appName: string): ErrorResponse {
  return {
    status: 503,
    code: 'internal',
    title: `${appName} is not live yet`,
    message: `The app ${appName} exists, but no release of it has gone live yet.`,
    advice: `Deploy it: \`git push paas main\`. If that has failed, see why: \`paas ps -a ${appName}\``,
    retryAfterSeconds: 10,
  };
}

/** For an app none of whose instances can be reached. */
export function notRunning(appName: string): ErrorResponse {
  return {
    status: 503,
    code: 'internal',
    title: `${appName} is not running`,
    message: `No instance of the app ${appName} accepts requests. It is starting, has crashed or is scaled to 0.`,
    advice: `To see why, run: \`paas logs -a ${appName}\``,
    retryAfterSeconds: 5,
  };
}

/** For an instance that closed the connection without a response. */
export function connectionClosed(appName: string): ErrorResponse {
  return {
    status: 502,
    code: 'internal',
    title: `${appName} did not respond`,
    message: `The app ${appName} closed the connection without a response.`,
    advice: `To see why, run: \`paas logs -a ${appName}\``,
  };
}

/** For an instance that did not begin its response in time. */
export function responseTimeout(appName: string, seconds: number): ErrorResponse {
  return {
    status: 504,
    code: 'internal',
    title: `${appName} did not respond in time`,
    message: `The app ${appName} did not begin to respond within ${seconds} seconds.`,
    advice: `To see why, run: \`paas logs -a ${appName}\``,
  };
}

/** For an app with more open requests than its share of the gateway's connections. */
export function appOverloaded(appName: string): ErrorResponse {
  return {
    status: 503,
    code: 'rate_limited',
    title: `${appName} has too many open requests`,
    message: `The app ${appName} has as many requests and WebSockets open as the platform has room for.`,
    advice: 'Try again later.',
    retryAfterSeconds: 5,
  };
}

/** For the API with more open requests than its share of the gateway's connections. */
export const apiOverloaded: ErrorResponse = {
  status: 503,
  code: 'rate_limited',
  title: 'The platform has too many open requests',
  message: 'The API has as many requests open as the platform has room for.',
  advice: 'Try again later.',
  retryAfterSeconds: 5,
  alwaysJson: true,
};

/** While the API does not listen on its socket. */
export const apiUnavailable: ErrorResponse = {
  status: 503,
  code: 'internal',
  title: 'The platform is starting or stopped',
  message: 'The API of the platform is not running. Apps are still served. Try again in a few seconds.',
  retryAfterSeconds: 2,
  alwaysJson: true,
};

/** For a source that has too many connections. */
export const tooManyConnections: ErrorResponse = {
  status: 429,
  code: 'rate_limited',
  title: 'Too many connections',
  message: 'There are too many connections from your address. Close some, or try again in a few seconds.',
  retryAfterSeconds: 5,
  alwaysJson: true,
};

/** Methods that are forwarded, though few hosts support them all. */
const usualMethods = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';

/** For a request that cannot be forwarded. @param alwaysJson see `ErrorResponse` */
export function badRequest(status: number, message: string, alwaysJson: boolean): ErrorResponse {
  const allow = status === 405 ? { allow: usualMethods } : {};
  return { status, code: 'validation_failed', title: 'This request is invalid', message, alwaysJson, ...allow };
}

/** An error response as it is sent. */
export interface RenderedResponse {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** @param accept the request's Accept header, '' when it has none */
export function renderErrorResponse(response: ErrorResponse, accept: string, requestId: string, now: Date): RenderedResponse {
  const [type, body] = renderBody(response, accept, requestId, now);
  const headers: Record<string, string> = {
    'Content-Type': type,
    'Content-Length': String(Buffer.byteLength(body)),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    'X-Request-Id': requestId,
  };
  if (response.allow !== undefined) headers['Allow'] = response.allow;
  if (response.retryAfterSeconds !== undefined) headers['Retry-After'] = String(response.retryAfterSeconds);
  return { status: response.status, headers, body };
}

function renderBody(response: ErrorResponse, accept: string, requestId: string, now: Date): [type: string, body: string] {
  if (response.alwaysJson === true || /\bapplication\/(?:[a-z.]+\+)?json\b/i.test(accept))
    return ['application/json', renderJson(response, requestId, now)];
  if (/\btext\/html\b/i.test(accept)) return ['text/html; charset=utf-8', renderPage(response, requestId)];
  return ['text/plain; charset=utf-8', renderText(response)];
}

function renderJson({ code, message, advice }: ErrorResponse, requestId: string, now: Date): string {
  const text = advice === undefined ? message : `${message} ${advice}`;
  return JSON.stringify({ error: { code, message: text, request_id: requestId, ts: now.toISOString() } });
}

function renderText({ title, message, advice }: ErrorResponse): string {
  return `${[title, message, advice?.replaceAll('`', '')].filter((line) => line !== undefined).join('\n')}\n`;
}

function renderPage({ status, title, message, advice }: ErrorResponse, requestId: string): string {
  const hint = advice === undefined ? '' : `\n<p>${escapeHtml(advice).replace(/`([^`]*)`/g, '<code>$1</code>')}</p>`;
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escapeHtml(title)}</title>
<style>
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 36rem; margin: 20vh auto; padding: 0 1.5rem }
h1 { font-size: 1.5rem; margin: 0 }
code { padding: .15em .4em; border-radius: .25em; background: #8883 }
small { opacity: .6 }
</style>
<h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(message)}</p>${hint}
<small>${status} · ${requestId}</small>
</html>
`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
