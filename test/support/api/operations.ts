import { createDocumentedApi } from '#api/documented-api.ts';
import { openApiDocument } from '#api/openapi/openapi-document.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';
import type { DocumentedOperation } from '#test/support/api/openapi-contract.ts';
import type { PathValues } from '#test/support/api/seed-world.ts';
import type { Answer, TestApi, TestUser } from '#test/support/api/test-api.ts';

interface Schema {
  $ref?: string;
  type?: string | string[];
  example?: unknown;
  enum?: unknown[];
  required?: string[];
  properties?: Record<string, Schema>;
  additionalProperties?: unknown;
}
interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  schema?: Schema;
}
export interface Operation extends DocumentedOperation {
  parameters?: Parameter[];
  requestBody?: { content: Record<string, { schema: Schema }> };
}

const document = openApiDocument(createDocumentedApi());

/** Every operation of the document; at hand when tests are collected, so that each can be a test. */
export const operations: readonly Operation[] = Object.entries(document.paths ?? {}).flatMap(([path, item]) =>
  Object.entries(item as Record<string, Operation>).map(([method, operation]) => ({
    ...operation,
    method: method.toUpperCase(),
    path,
  })),
);

/** Those that the document says need a token. */
export const guardedOperations = operations.filter(({ security }) => security.length > 0);

/** Where what the document asks for is not enough to say. */
const bodies: Record<string, unknown> = {
  changeConfig: { GREETING: 'hello' },
  setGitSource: { url: null },
  changeRole: { role: 'viewer' },
  invite: { email: 'bob@example.com', role: 'viewer' },
};

/** A body that the schema of the operation takes; undefined when it takes none. One route has its app there, not in the path. */
export function bodyOf({ operationId, requestBody }: Operation, values: PathValues): unknown {
  if (operationId === 'createDatabase') return { app_id: values['id'] ?? 'x' };
  const schema = requestBody?.content['application/json']?.schema;
  return schema === undefined ? undefined : (bodies[operationId] ?? valueOf(schema));
}

function valueOf(schema: Schema): unknown {
  if (schema.example !== undefined) return schema.example;
  if (schema.enum !== undefined) return schema.enum[0];
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === 'integer' || type === 'number') return 1;
  if (type === 'boolean') return true;
  if (type === 'array') return [];
  if (type !== 'object') return 'x';
  return Object.fromEntries((schema.required ?? []).map((name) => [name, valueOf(schema.properties?.[name] ?? {})]));
}

/** The parameters in the path, as ['id', 'bid']. */
export function pathParameters({ path }: Operation): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '');
}

export function addressOf(operation: Operation, values: PathValues): string {
  const path = operation.path.replace(/\{(\w+)\}/g, (_match, name: string) => encodeURIComponent(values[name] ?? 'x'));
  const query = (operation.parameters ?? [])
    .filter((parameter) => parameter.in === 'query' && parameter.required === true)
    .map(({ name, schema }) => `${name}=${encodeURIComponent(String(valueOf(schema ?? {})))}`);
  return query.length === 0 ? path : `${path}?${query.join('&')}`;
}

/** Calls an operation as the document says it is called. */
export function call(
  test: TestApi,
  operation: Operation,
  values: PathValues,
  as?: TestUser,
  headers?: Record<string, string>,
): Promise<Answer> {
  const json = bodyOf(operation, values);
  return test.ask(operation.method, addressOf(operation, values), {
    ...omitUndefined({ as, json, headers }),
  });
}

/** They differ from answer to answer. */
const volatileHeaders = new Set(['x-request-id', 'date']);

/** What must be the same, byte for byte, for what does not exist and what is not the caller's: all but the request's own name and time. */
export function essence({ status, headers, body }: Answer): string {
  const {
    request_id: _id,
    ts: _ts,
    ...rest
  } = (body as Partial<Answer['body']> | undefined)?.error ?? { request_id: '', ts: '' };
  const kept = [...headers].filter(([name]) => !volatileHeaders.has(name) && !name.startsWith('ratelimit'));
  return JSON.stringify([status, kept, rest]);
}
