import { createRoute, z } from '@hono/zod-openapi';
import { stringify } from 'yaml';
import type { Api } from '#api/http/api-env.ts';
import { openApiDocument } from '#api/openapi/openapi-document.ts';
import { answer, dataOf, refusalsOf } from '#api/openapi/schemas.ts';
import { AppError } from '#shared/errors.ts';
import type { Identity } from '#shared/identity/identity.ts';

const tags = ['service'];
const anyObject = z.record(z.string(), z.unknown());
const publicly = { 'cache-control': 'public, max-age=300' };

const healthSchema = z.object({
  status: z.literal('ok'),
  builds: z.enum(['accepted', 'refused']).describe('`refused` while the disk of the platform is almost full.'),
});

const health = createRoute({
  method: 'get',
  path: '/v1/healthz',
  operationId: 'readHealth',
  summary: 'Check the health of the platform',
  tags,
  security: [],
  responses: { 200: answer(dataOf(healthSchema), 'Ready.'), ...refusalsOf(503) },
});

const documentJson = createRoute({
  method: 'get',
  path: '/v1/openapi.json',
  operationId: 'readOpenApiJson',
  summary: 'Get this document as JSON',
  tags,
  security: [],
  responses: { 200: answer(anyObject, 'OpenAPI 3.1 document.') },
});

const documentYaml = createRoute({
  method: 'get',
  path: '/v1/openapi.yaml',
  operationId: 'readOpenApiYaml',
  summary: 'Get this document as YAML',
  tags,
  security: [],
  responses: { 200: { description: 'OpenAPI 3.1 document.', content: { 'application/yaml': { schema: anyObject } } } },
});

const jwks = createRoute({
  method: 'get',
  path: '/v1/auth/jwks.json',
  operationId: 'readKeys',
  summary: 'Get the public keys that verify access tokens',
  tags,
  security: [],
  responses: { 200: answer(z.object({ keys: z.array(anyObject) }), 'A JSON Web Key Set.'), ...refusalsOf(429, 500, 503) },
});

const discovery = createRoute({
  method: 'get',
  path: '/v1/auth/.well-known/openid-configuration',
  operationId: 'readIssuer',
  summary: 'Get the metadata of the token issuer',
  tags,
  security: [],
  responses: {
    200: answer(anyObject, 'Discovery document: the issuer and the address of its keys.'),
    ...refusalsOf(429, 500, 503),
  },
});

/** What the service routes answer with. */
export interface ServiceFacts {
  /** Issuer of access tokens, a URL. Discovery is below it. */
  issuer: string;
  /** Rejects when the platform cannot work, for example without its database. */
  checkReady(): Promise<void>;
  /** Whether there is room for builds. */
  acceptsBuilds(): Promise<boolean>;
}

/** Adds the routes about the platform itself: health, and what clients discover. */
export function addServiceRoutes(api: Api, identity: Pick<Identity, 'readKeys'>, facts: ServiceFacts): void {
  api.openapi(health, async (c) => {
    let acceptsBuilds: boolean;
    try {
      await facts.checkReady();
      acceptsBuilds = await facts.acceptsBuilds();
    } catch (cause) {
      c.header('retry-after', '1');
      const { body } = c.get('refuse')(new AppError('internal', 'The platform is not ready.', { cause }));
      return c.json(body, 503);
    }
    return c.json(
      { data: { status: 'ok' as const, builds: acceptsBuilds ? ('accepted' as const) : ('refused' as const) } },
      200,
      { 'cache-control': 'no-store' },
    );
  });

  // All routes are known when the first request comes, and they never change.
  let json: Record<string, unknown> | undefined;
  let yaml: string | undefined;
  api.openapi(documentJson, (c) => {
    json ??= { ...openApiDocument(api) };
    return c.json(json, 200, publicly);
  });
  api.openapi(documentYaml, (c) => {
    yaml ??= stringify(openApiDocument(api), { aliasDuplicateObjects: false });
    return c.body(yaml, 200, { 'content-type': 'application/yaml', ...publicly });
  });

  api.openapi(jwks, async (c) => {
    const { keys } = await identity.readKeys();
    return c.json({ keys: [...keys] }, 200, publicly);
  });

  api.openapi(discovery, (c) => {
    const { issuer } = facts;
    // Enough to verify access tokens, and no more: login and refresh are JSON requests, not OAuth 2.0 (RFC 8414 §2). The lists
    // that are required are empty. Verifiers take the algorithm of tokens from the last one, so it has a value.
    const document = {
      issuer,
      jwks_uri: `${issuer}/jwks.json`,
      response_types_supported: [],
      grant_types_supported: [],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['ES256'],
    };
    return c.json(document, 200, publicly);
  });
}
