import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { Validator } from '@seriousme/openapi-schema-validator';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { createDocumentedApi } from '#api/documented-api.ts';
import { openApiDocument } from '#api/openapi/openapi-document.ts';

const read = (name: string): string => readFileSync(new URL(name, import.meta.url), 'utf8');
const document = () => openApiDocument(createDocumentedApi());

interface Operation {
  operationId?: string;
  summary?: string;
  tags?: string[];
  security?: unknown;
  responses: Record<string, unknown>;
}
const operations = Object.entries(document().paths ?? {}).flatMap(([path, item]) =>
  Object.entries(item as Record<string, Operation>).map(([method, operation]) => ({
    name: `${method.toUpperCase()} ${path}`,
    operation,
  })),
);

const examples = {
  'no-invalid-media-type-examples': 'error',
  'no-invalid-parameter-examples': 'error',
  'no-invalid-schema-examples': 'error',
} as const;

describe('the OpenAPI document', () => {
  it('is committed as the routes define it (otherwise run `npm run openapi`)', () => {
    expect(`${JSON.stringify(document(), null, 2)}\n`).toBe(read('openapi.json'));
  });

  it('is the source of the committed types (otherwise run `npm run openapi`)', () => {
    expect(read('../shared/api-client/openapi-types.ts')).toContain(
      createHash('sha256').update(read('openapi.json')).digest('hex'),
    );
  });

  it('is valid by the JSON schema of OpenAPI 3.1', async () => {
    const validator = new Validator();
    const result = await validator.validate(JSON.parse(read('openapi.json')) as Record<string, unknown>);
    expect(result).toEqual({ valid: true });
    expect(validator.version).toBe('3.1');
  });

  it('is valid by a linter: parameters, references and examples', async () => {
    const config = await createConfig({ extends: ['spec'], rules: { ...examples, 'operation-operationId-unique': 'error' } });
    const problemsOf = async (source: string): Promise<string[]> =>
      (await lintFromString({ source, config })).map(({ ruleId, message }) => `${ruleId}: ${message}`);
    expect(await problemsOf(read('openapi.json'))).toEqual([]);
    const broken = read('openapi.json').replaceAll('"name": "bid"', '"name": "other"');
    expect(await problemsOf(broken)).toContainEqual(expect.stringContaining('path-parameters-defined'));
  });

  it('is served as JSON and as YAML with the same content', async () => {
    const api = createDocumentedApi();
    const json: unknown = await (await api.request('/v1/openapi.json')).json();
    expect(json).toEqual(JSON.parse(read('openapi.json')));
    const yaml = await api.request('/api/v1/openapi.yaml');
    expect(yaml.headers.get('content-type')).toBe('application/yaml');
    expect(parse(await yaml.text())).toEqual(json);
  });

  it('lists every route', () => {
    const routed = new Set(
      createDocumentedApi()
        .routes.filter((route) => route.method !== 'ALL')
        .map((route) => `${route.method} ${route.path.replace(/:(\w+)/g, '{$1}')}`),
    );
    expect(new Set(operations.map(({ name }) => name))).toEqual(routed);
  });

  it('declares and describes each tag that an operation has', () => {
    const declared = (document().tags ?? []).filter(({ description }) => description !== undefined).map(({ name }) => name);
    expect(new Set(operations.flatMap(({ operation }) => operation.tags ?? []))).toEqual(new Set(declared));
  });

  it('names each operation once', () => {
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it.each(operations)('describes $name: summary, security and error responses', ({ operation }) => {
    expect(operation.summary).toBeTruthy();
    expect(operation.tags).toHaveLength(1);
    expect(operation.security).toBeDefined();
    if (JSON.stringify(operation.security) === '[]') return;
    expect(Object.keys(operation.responses)).toEqual(expect.arrayContaining(['401', '403', '429', '500']));
  });
});
