/**
 * What a static site runs: `node static-server.ts <directory>`, listening on PORT of 127.0.0.1. Mounted into the sandbox
 * alone, so it imports nothing but Node.
 */
import { createReadStream } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { extname, sep } from 'node:path';
import { argv, env } from 'node:process';
import { pathToFileURL } from 'node:url';

const types: Readonly<Record<string, string>> = {
  '.avif': 'image/avif',
  '.css': 'text/css; charset=utf-8',
  '.csv': 'text/csv; charset=utf-8',
  '.gif': 'image/gif',
  '.htm': 'text/html; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.jpeg': 'image/jpeg',
  '.jpg': 'image/jpeg',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.map': 'application/json',
  '.md': 'text/markdown; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.mp3': 'audio/mpeg',
  '.mp4': 'video/mp4',
  '.otf': 'font/otf',
  '.pdf': 'application/pdf',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.ttf': 'font/ttf',
  '.txt': 'text/plain; charset=utf-8',
  '.wasm': 'application/wasm',
  '.webm': 'video/webm',
  '.webmanifest': 'application/manifest+json',
  '.webp': 'image/webp',
  '.woff': 'font/woff',
  '.woff2': 'font/woff2',
  '.xml': 'application/xml',
};

interface Found {
  readonly file: string;
  readonly bytes: number;
  readonly etag: string;
}

/** Serves the files of a directory; dot files (but .well-known) and what symlinks lead out to do not exist. */
export function createStaticServer(root: string): Server {
  return createServer((request, response) => {
    answer(root, request, response).catch(() => {
      if (!response.headersSent) send(response, 500, 'Internal error\n');
      response.destroy();
    });
  });
}

async function answer(root: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD');
    return send(response, 405, 'Method not allowed\n');
  }
  const [rawPath = '/', ...query] = (request.url ?? '/').split('?');
  const path = decodePath(rawPath);
  if (path === undefined) return send(response, 400, 'Bad request\n');
  const found = await find(root, path);
  if (found === 'directory') {
    // One leading slash only: `//host/` in a Location would lead to another site.
    response.setHeader('location', `${encodeURI(path).replace(/^\/+/, '/')}/${query.length > 0 ? `?${query.join('?')}` : ''}`);
    return send(response, 301, '');
  }
  if (found !== undefined) return sendFile(request, response, 200, found);
  const page = await find(root, '/404.html');
  return page === undefined || page === 'directory' ? send(response, 404, 'Not found\n') : sendFile(request, response, 404, page);
}

/** Undefined for what no file can be meant by. */
function decodePath(raw: string): string | undefined {
  try {
    const path = decodeURIComponent(raw);
    return path.startsWith('/') && !path.includes('\0') && !path.includes('\\') ? path : undefined;
  } catch {
    return undefined;
  }
}

/** 'directory' stands for one whose address lacks the slash at its end. */
async function find(root: string, path: string): Promise<Found | 'directory' | undefined> {
  const parts = path.split('/').filter((part) => part !== '');
  if (parts.some((part) => part.startsWith('.') && part !== '.well-known')) return undefined;
  const name = parts.join('/');
  if (path.endsWith('/')) return readFound(root, name === '' ? 'index.html' : `${name}/index.html`);
  const exact = await readFound(root, name);
  if (exact !== undefined) return exact;
  if ((await readFound(root, `${name}/index.html`)) !== undefined) return 'directory';
  return extname(name) === '' ? readFound(root, `${name}.html`) : undefined;
}

async function readFound(root: string, name: string): Promise<Found | undefined> {
  const [base, file] = await Promise.all([realpath(root), realpath(`${root}/${name}`).catch(() => undefined)]);
  if (!file?.startsWith(base + sep)) return undefined;
  const facts = await stat(file);
  if (!facts.isFile()) return undefined;
  return { file, bytes: facts.size, etag: `"${facts.size.toString(36)}-${Math.trunc(facts.mtimeMs).toString(36)}"` };
}

function sendFile(request: IncomingMessage, response: ServerResponse, status: number, found: Found): void {
  response.setHeader('etag', found.etag);
  response.setHeader('cache-control', 'no-cache');
  response.setHeader('x-content-type-options', 'nosniff');
  const known = request.headers['if-none-match']?.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  if (status === 200 && (known?.includes(found.etag) === true || known?.includes('*') === true)) {
    response.writeHead(304).end();
    return;
  }
  response.writeHead(status, {
    'content-type': types[extname(found.file).toLowerCase()] ?? 'application/octet-stream',
    'content-length': found.bytes,
  });
  if (request.method === 'HEAD') {
    response.end();
    return;
  }
  createReadStream(found.file, { end: Math.max(found.bytes - 1, 0) })
    .on('error', () => response.destroy())
    .pipe(response);
}

function send(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'content-length': Buffer.byteLength(body) });
  response.end(response.req.method === 'HEAD' ? undefined : body);
}

function main(directory: string, port: number): void {
  const server = createStaticServer(directory);
  server.listen(port, '127.0.0.1');
  process.once('SIGTERM', () => {
    server.close();
    server.closeIdleConnections();
  });
}

if (argv[1] !== undefined && import.meta.url === pathToFileURL(argv[1]).href) main(argv[2] ?? '.', Number(env.PORT ?? 5000));
