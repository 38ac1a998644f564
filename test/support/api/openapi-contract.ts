import { readFileSync } from 'node:fs';
import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

interface Operation {
  operationId: string;
  security: readonly unknown[];
  responses: Record<string, { $ref?: string; headers?: object; content?: Record<string, { schema: unknown }> }>;
}

export interface DocumentedOperation extends Operation {
  method: string;
  /** As in the document: '/v1/apps/{id}'. */
  path: string;
}

interface Document {
  paths: Record<string, Record<string, Operation>>;
}

const documentUrl = new URL('../../../api/openapi.json', import.meta.url);

/** Compares responses with the committed OpenAPI document. */
export interface ApiContract {
  readonly operations: readonly DocumentedOperation[];
  /** @throws Error where a documented operation gives a response that the document does not describe */
  check(method: string, path: string, status: number, type: string, body: unknown): void;
  /** @throws Error where a response lacks a header that is documented for it */
  checkHeaders(method: string, path: string, { status, headers }: Pick<Response, 'status' | 'headers'>): void;
}

let contract: ApiContract | undefined;

/** One for all files of a process: compiling a schema takes longer than most tests. */
export const readApiContract = (): ApiContract => (contract ??= createApiContract());

function createApiContract(): ApiContract {
  const document = JSON.parse(readFileSync(documentUrl, 'utf8')) as Document;
  const ajv = new Ajv2020.default({ strict: false });
  addFormats.default(ajv);
  ajv.addSchema(document, 'document');
  const validators = new Map<string, ValidateFunction>();
  const operations: DocumentedOperation[] = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
  );

  const patterns = operations.map((operation) => ({
    operation,
    path: new RegExp(`^${operation.path.replace(/\{\w+\}/g, '[^/]+')}$`),
  }));

  const findOperation = (method: string, path: string): DocumentedOperation | undefined => {
    const wanted = path.replace(/\?.*$/, '').replace(/^\/api\/v1\//, '/v1/');
    const documented = method === 'HEAD' ? 'GET' : method;
    return patterns.find((pattern) => pattern.operation.method === documented && pattern.path.test(wanted))?.operation;
  };

  return {
    operations,
    checkHeaders(method, path, { status, headers }) {
      const operation = findOperation(method, path);
      const missing = Object.keys(operation?.responses[status]?.headers ?? {}).filter((name) => !headers.has(name));
      if (missing.length > 0) throw new Error(`${operation?.operationId} answered ${status} without ${missing.join(', ')}`);
    },
    check(method, path, status, type, body) {
      const operation = findOperation(method, path);
      if (operation === undefined || status === 304) return;
      const response = operation.responses[status];
      if (response === undefined)
        throw new Error(`${operation.operationId} answered ${status}, which is not documented: ${JSON.stringify(body)}`);
      if (body === undefined || method === 'HEAD') return;
      if (response.content?.[type] === undefined)
        throw new Error(`${operation.operationId} answered ${status} as ${type}, which is not documented`);
      if (type !== 'application/json') return;
      const pointer = [
        'paths',
        operation.path,
        operation.method.toLowerCase(),
        'responses',
        String(status),
        'content',
        type,
        'schema',
      ]
        .map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')))
        .join('/');
      const validate = validators.get(pointer) ?? ajv.compile({ $ref: `document#/${pointer}` });
      validators.set(pointer, validate);
      if (!validate(body))
        throw new Error(
          `${operation.operationId} answered ${status} against its schema: ${ajv.errorsText(validate.errors)}\n${JSON.stringify(body)}`,
        );
    },
  };
}
