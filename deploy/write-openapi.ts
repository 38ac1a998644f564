/** Writes api/openapi.json and, from it, shared/api-client/openapi-types.ts: run it after a change of the routes (`npm run openapi`). */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createDocumentedApi } from '#api/documented-api.ts';
import { openApiDocument } from '#api/openapi/openapi-document.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const documentPath = `${root}api/openapi.json`;
const typesPath = `${root}shared/api-client/openapi-types.ts`;

const document = `${JSON.stringify(openApiDocument(createDocumentedApi()), null, 2)}\n`;
await writeFile(documentPath, document);

// Through bunx, with a compiler of its own: it needs the JavaScript API that TypeScript 7 does not have.
await promisify(execFile)(`${root}node_modules/.bin/bun`, [
  'x',
  '-p',
  'openapi-typescript@7.13.0',
  'openapi-typescript',
  documentPath,
  '-o',
  typesPath,
]);
const digest = createHash('sha256').update(document).digest('hex');
const notice = `/** Written by deploy/write-openapi.ts from api/openapi.json, whose SHA-256 is ${digest}. */\n`;
await writeFile(typesPath, notice + (await readFile(typesPath, 'utf8')));
