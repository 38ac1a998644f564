/** What the gateway says in its own name: a page, a line of text or the API's error envelope, as the client reads best. */
export interface OwnAnswer {
  readonly status: number;
  /** Code of the JSON envelope. */
  readonly code: 'not_found' | 'internal' | 'validation_failed';
  readonly title: string;
  /** One sentence: what is wrong. */
  readonly message: string;
  /** What to do about it; a part in backticks is a command. */
  readonly advice?: string;
  readonly retryAfterSeconds?: number;
  /** Whoever asked the API reads JSON, whatever the Accept header says. */
  readonly alwaysJson?: boolean;
}

export function noSuchApp(host: string): OwnAnswer {
  return {
    status: 404,
    code: 'not_found',
    title: 'There is no app here',
    message: `No app answers at ${host}.`,
    advice: 'Check the address, or create the app: `paas create`',
  };
}

export function noSuchHost(host: string): OwnAnswer {
  return {
    status: 404,
    code: 'not_found',
    title: 'There is nothing here',
    message: `Neither an app nor the platform answers at ${host}.`,
    advice: 'If this is the platform’s own address, its operator sets `PAAS_BASE_URL` to it.',
  };
}

export function nothingDeployed(appName: string): OwnAnswer {
  return {
    status: 503,
    code: 'internal',
    title: `${appName} is waiting for its first deploy`,
    message: `The app ${appName} exists, but nothing has been deployed to it yet.`,
    advice: 'Deploy it: `git push paas main`',
    retryAfterSeconds: 10,
  };
}

export function noInstance(appName: string): OwnAnswer {
  return {
    status: 503,
    code: 'internal',
    title: `${appName} is not running`,
    message: `No instance of the app ${appName} takes requests right now: it is starting, crashed or scaled to 0.`,
    advice: `See why: \`paas logs -a ${appName}\``,
    retryAfterSeconds: 5,
  };
}

export function brokenAnswer(appName: string): OwnAnswer {
  return {
    status: 502,
    code: 'internal',
    title: `${appName} did not answer`,
    message: `The app ${appName} closed the connection before it had answered.`,
    advice: `See why: \`paas logs -a ${appName}\``,
  };
}

export function lateAnswer(appName: string, seconds: number): OwnAnswer {
  return {
    status: 504,
    code: 'internal',
    title: `${appName} did not answer in time`,
    message: `The app ${appName} did not begin to answer within ${seconds} seconds.`,
    advice: `See why: \`paas logs -a ${appName}\``,
  };
}

export const apiDown: OwnAnswer = {
  status: 503,
  code: 'internal',
  title: 'The platform is starting or stopped',
  message: 'The platform’s API is not running at the moment; apps are served on. Try again shortly.',
  retryAfterSeconds: 2,
  alwaysJson: true,
};

export function badRequest(status: number, message: string): OwnAnswer {
  return { status, code: 'validation_failed', title: 'This request cannot be served', message };
}

export interface RenderedAnswer {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** @param accept the request's Accept header, '' when it has none */
export function renderAnswer(answer: OwnAnswer, accept: string, requestId: string, now: Date): RenderedAnswer {
  const [type, body] =
    answer.alwaysJson === true || /\bapplication\/(?:[a-z.]+\+)?json\b/i.test(accept)
      ? (['application/json', renderJson(answer, requestId, now)] as const)
      : /\btext\/html\b/i.test(accept)
        ? (['text/html; charset=utf-8', renderPage(answer, requestId)] as const)
        : (['text/plain; charset=utf-8', renderText(answer)] as const);
  return {
    status: answer.status,
    headers: {
      'Content-Type': type,
      'Content-Length': String(Buffer.byteLength(body)),
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      'X-Request-Id': requestId,
      ...(answer.retryAfterSeconds === undefined ? {} : { 'Retry-After': String(answer.retryAfterSeconds) }),
    },
    body,
  };
}

function renderJson({ code, message, advice }: OwnAnswer, requestId: string, now: Date): string {
  const text = advice === undefined ? message : `${message} ${advice}`;
  return JSON.stringify({ error: { code, message: text, request_id: requestId, ts: now.toISOString() } });
}

function renderText({ title, message, advice }: OwnAnswer): string {
  return `${[title, message, advice?.replaceAll('`', '')].filter((line) => line !== undefined).join('\n')}\n`;
}

function renderPage({ status, title, message, advice }: OwnAnswer, requestId: string): string {
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
