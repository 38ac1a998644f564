import { createReadStream } from 'node:fs';
import { readFile, realpath, stat } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { extname, sep } from 'node:path';
import { pipeline } from 'node:stream';
import { constants, createBrotliCompress, createGzip } from 'node:zlib';
import { isAddress, parseSiteRules, type Redirect, type SiteRules } from './site-rules.ts';

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

export interface StaticServerOptions {
  /** Whether index.html answers where no file does, for apps that route in the browser. */
  readonly fallback: boolean;
}

interface Site extends StaticServerOptions {
  readonly root: string;
  readonly rules: SiteRules;
}

/**
 * Serves the files of a directory; dot files (but .well-known) and what symlinks lead out to do not exist. The rules of
 * `_redirects` and `_headers` in the directory apply.
 */
export async function createStaticServer(root: string, options: StaticServerOptions = { fallback: false }): Promise<Server> {
  const [redirects, headers] = await Promise.all(['_redirects', '_headers'].map((name) => readRules(root, name)));
  const site: Site = { root, ...options, rules: parseSiteRules(redirects ?? '', headers ?? '') };
  return createServer((request, response) => {
    answer(site, request, response).catch(() => {
      if (!response.headersSent) send(response, 500, 'Internal error\n');
      response.destroy();
    });
  });
}

async function readRules(root: string, name: string): Promise<string> {
  const found = await readFound(root, name).catch(() => undefined);
  return found === undefined ? '' : readFile(found.file, 'utf8');
}

async function answer(site: Site, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD');
    return send(response, 405, 'Method not allowed\n');
  }
  const [rawPath = '/', ...query] = (request.url ?? '/').split('?');
  const path = decodePath(rawPath);
  if (path === undefined) return send(response, 400, 'Bad request\n');
  for (const [name, value] of site.rules.findHeaders(path)) response.setHeader(name, value);
  const redirect = site.rules.findRedirect(path);
  const search = query.length > 0 ? `?${query.join('?')}` : '';
  if (redirect?.forced === true) return follow(site, request, response, redirect, search);
  const found = isRuleFile(path) ? undefined : await find(site.root, path);
  if (found === 'directory') {
    // One leading slash only: `//host/` in a Location would lead to another site.
    response.setHeader('location', `${encodeURI(path).replace(/^\/+/, '/')}/${search}`);
    return send(response, 301, '');
  }
  if (found !== undefined) return sendFile(request, response, 200, found);
  if (redirect !== undefined) return follow(site, request, response, redirect, search);
  return sendMissing(site, request, response, path);
}

function isRuleFile(path: string): boolean {
  return path === '/_redirects' || path === '/_headers';
}

/** A redirect with status 200 or 404 answers with a file of the site, others with an address. */
async function follow(
  { root }: Site,
  request: IncomingMessage,
  response: ServerResponse,
  { to, status }: Redirect,
  search: string,
): Promise<void> {
  if (isAddress(status)) {
    const address = to.replace(/^\/+/, '/');
    response.setHeader('location', to.includes('?') ? address : `${address}${search}`);
    return send(response, status, '');
  }
  const found = to.startsWith('/') ? await find(root, to) : undefined;
  const file = found === 'directory' ? await find(root, `${to}/`) : found;
  return file === undefined || file === 'directory'
    ? send(response, 404, 'Not found\n')
    : sendFile(request, response, status, file);
}

/** 404.html where the site has one; else index.html for what a browser may route itself, which no path of a file is. */
async function sendMissing(
  { root, fallback }: Site,
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
): Promise<void> {
  const page = await find(root, '/404.html');
  if (page !== undefined && page !== 'directory') return sendFile(request, response, 404, page);
  const routed = fallback && (extname(path) === '' || request.headers.accept?.includes('text/html') === true);
  const index = routed ? await find(root, '/') : undefined;
  return index === undefined || index === 'directory'
    ? send(response, 404, 'Not found\n')
    : sendFile(request, response, 200, index);
}

/** No file has a longer one, and rules take long to compare with it. */
const longestPath = 4096;

/** Undefined for what no file can be meant by. */
function decodePath(raw: string): string | undefined {
  if (raw.length > longestPath) return undefined;
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

/** Names that change with their content, as bundlers make them: these files can be kept for ever. */
const hashedNames = [
  /\/(assets|_astro|_nuxt|_app\/immutable|_next\/static|_expo\/static|static\/(js|css|media))\/.*[-._][\w-]{8,}\.\w+$/,
  /\/_next\/static\/[\w-]{20,}\/[^/]+$/,
  /\/[\w.]+-[A-Z0-9]{8}\.(js|css|mjs)$/,
];
const compressible = /^(text\/|image\/svg|application\/(json|xml|wasm|manifest))/;
const fewestBytesToCompress = 1024;

function sendFile(request: IncomingMessage, response: ServerResponse, status: number, found: Found): void {
  const type = types[extname(found.file).toLowerCase()] ?? 'application/octet-stream';
  const squeezed = compressible.test(type) && found.bytes >= fewestBytesToCompress;
  const encoding = squeezed ? chooseEncoding(request.headers['accept-encoding']) : undefined;
  const etag = encoding === undefined ? found.etag : `W/${found.etag.slice(0, -1)}-${encoding}"`;
  const kept = status === 200 && hashedNames.some((pattern) => pattern.test(found.file));
  response.setHeader('etag', etag);
  if (!response.hasHeader('cache-control'))
    response.setHeader('cache-control', kept ? 'public, max-age=31536000, immutable' : 'no-cache');
  response.setHeader('x-content-type-options', 'nosniff');
  if (squeezed) response.appendHeader('vary', 'accept-encoding');
  const known = request.headers['if-none-match']?.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  if (status === 200 && (known?.includes(etag.replace(/^W\//, '')) === true || known?.includes('*') === true)) {
    response.writeHead(304).end();
    return;
  }
  if (!response.hasHeader('content-type')) response.setHeader('content-type', type);
  response.writeHead(status, encoding === undefined ? { 'content-length': found.bytes } : { 'content-encoding': encoding });
  if (request.method === 'HEAD') {
    response.end();
    return;
  }
  const file = createReadStream(found.file, { end: Math.max(found.bytes - 1, 0) });
  const failed = (error: unknown): void => void (error instanceof Error && response.destroy());
  if (encoding === 'br')
    pipeline(file, createBrotliCompress({ params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }), response, failed);
  else if (encoding === 'gzip') pipeline(file, createGzip(), response, failed);
  else pipeline(file, response, failed);
}

function chooseEncoding(accepted: string | undefined): 'br' | 'gzip' | undefined {
  const names = (accepted ?? '').split(',').filter((word) => !/;\s*q=0(\.0*)?\s*$/.test(word));
  const has = (name: string): boolean => names.some((word) => word.trim().split(';')[0] === name);
  return has('br') ? 'br' : has('gzip') ? 'gzip' : undefined;
}

function send(response: ServerResponse, status: number, body: string): void {
  if (!response.hasHeader('content-type')) response.setHeader('content-type', 'text/plain; charset=utf-8');
  response.writeHead(status, { 'content-length': Buffer.byteLength(body) });
  response.end(response.req.method === 'HEAD' ? undefined : body);
}
