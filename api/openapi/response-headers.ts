import { limitedOnFailure } from '#api/http/public-routes.ts';

type Headers = Record<string, { $ref: string }>;
interface Response {
  headers?: Headers;
}
interface Document {
  paths?: object;
  components?: object;
}

const text = (description: string, example: string) => ({
  description,
  required: true,
  schema: { type: 'string' as const, example },
});

const headers = {
  RequestId: text('Identifies the request in the log of the operator.', 'req_3f9a2c1b7d604e5f8a9b0c1d2e3f4a5b'),
  RateLimitPolicy: text('The limit that applies: `q` requests in `w` seconds.', '"authenticated";q=600;w=60'),
  RateLimit: text('`r` requests are left, and in `t` seconds one more.', '"authenticated";r=599;t=60'),
  RetryAfter: {
    description: 'Seconds until the same request can succeed.',
    required: true,
    schema: { type: 'integer' as const, minimum: 0, example: 1 },
  },
  Authenticate: text('The authentication scheme.', 'Bearer'),
};

const allow = text('The methods that the path supports.', 'HEAD, GET, POST, OPTIONS');

/** Adds the headers that middleware sets to the responses of an OpenAPI document, and describes the answer to an unsupported method. */
export function describeHeaders<Described extends Document>(document: Described): Described {
  const paths = Object.entries(document.paths ?? {}).map(([path, methods]) => [path, describePath(path, methods as Methods)]);
  const requestId = referTo('RequestId');
  const components = {
    ...document.components,
    headers,
    responses: {
      MethodNotAllowed: {
        description: 'The path does not support the method.',
        headers: { ...requestId, Allow: allow },
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      },
    },
  };
  return { ...document, paths: Object.fromEntries(paths) as unknown, components };
}

type Methods = Record<string, { responses: Record<string, Response> }>;

/** As OpenAPI writes them: 'get /v1/internal/builds/{bid}/source'. */
const uncounted = new Set(
  limitedOnFailure.map((route) => route.replace(/^[A-Z]+/, (method) => method.toLowerCase()).replace(/:(\w+)/g, '{$1}')),
);

function describePath(path: string, methods: Methods): Methods {
  return Object.fromEntries(
    Object.entries(methods).map(([method, operation]) => {
      const counted = '429' in operation.responses && !uncounted.has(`${method} ${path}`);
      const limits = counted ? referTo('RateLimitPolicy', 'RateLimit') : {};
      const responses = Object.entries(operation.responses).map(([status, response]) => {
        const added = { ...referTo('RequestId'), ...(Number(status) < 300 ? limits : {}), ...headersOf(status) };
        return [status, { ...response, headers: { ...response.headers, ...added } }];
      });
      return [method, { ...operation, responses: Object.fromEntries(responses) as Record<string, Response> }];
    }),
  );
}

function headersOf(status: string): Headers {
  if (status === '401') return referTo('Authenticate');
  return status === '429' || status === '503' ? referTo('RetryAfter') : {};
}

const names = {
  RequestId: 'X-Request-Id',
  RateLimitPolicy: 'RateLimit-Policy',
  RateLimit: 'RateLimit',
  RetryAfter: 'Retry-After',
  Authenticate: 'WWW-Authenticate',
} satisfies Record<keyof typeof headers, string>;

function referTo(...components: readonly (keyof typeof headers)[]): Headers {
  return Object.fromEntries(components.map((name) => [names[name], { $ref: `#/components/headers/${name}` }]));
}
