import { createHash, createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { S3Account } from '#shared/object-store/s3-requests.ts';

/** How a request fails: by an error of the store, or by one of the network. */
export type Fault =
  | { status: number; code: string }
  /** The connection is closed before the request is handled. */
  | 'drop'
  /** The request is handled, and the connection is closed without a response. */
  | 'lose-response'
  /** There is never a response. */
  | 'hang'
  /** The body ends in the middle. */
  | 'cut'
  /** One bit of the body is changed. */
  | 'flip';

/** A request that was received. */
export interface SeenRequest {
  method: string;
  /** '' for the bucket. */
  key: string;
  query: URLSearchParams;
}

/**
 * A fake S3 store for machines without a real one: one bucket in memory. It checks signatures and digests of bodies as S3 does, and
 * fails on request. It passes the same suite as real stores.
 */
export interface TestS3Server {
  readonly account: S3Account;
  readonly objects: ReadonlyMap<string, StoredBytes>;
  /** Unfinished uploads by their ids. */
  readonly uploads: ReadonlyMap<string, { key: string }>;
  /** All requests so far. */
  readonly seen: readonly SeenRequest[];
  /** Called for each request; undefined when it shall not fail. */
  fault: (request: SeenRequest) => Fault | undefined;
  close(): Promise<void>;
}

interface StoredBytes {
  body: Buffer;
  meta: Record<string, string>;
  at: Date;
}

interface Reply {
  status: number;
  headers?: Record<string, string>;
  body?: Buffer;
}

/** Few, so that longer lists have several pages. */
const pageKeys = 3;
const bucketName = 'packs';

/** Starts the server on a free port. */
export async function openTestS3Server(): Promise<TestS3Server> {
  const objects = new Map<string, StoredBytes>();
  const uploads = new Map<string, { key: string; meta: Record<string, string>; at: Date; parts: Map<number, Buffer> }>();
  const seen: SeenRequest[] = [];
  const credentials = { region: 'eu-test-1', accessKeyId: 'TESTKEY', secretAccessKey: 'test/secret+key' };

  const put = (key: string, meta: Record<string, string>, body: Buffer): Reply => {
    objects.set(key, { body, meta, at: new Date() });
    return { status: 200, headers: { etag: tagOf(body) } };
  };
  const handle = (request: SeenRequest, headers: IncomingMessage['headers'], body: Buffer): Reply => {
    const { method, key, query } = request;
    const uploadId = query.get('uploadId') ?? '';
    const upload = uploads.get(uploadId);
    if (uploadId !== '' && upload === undefined) return reject(404, 'NoSuchUpload');
    const stored = objects.get(key);
    if (key === '') {
      if (query.has('uploads')) return listUploads(uploads, query.get('prefix') ?? '');
      return method === 'GET' ? listObjects(objects, query) : { status: 200 };
    }
    if (upload !== undefined) {
      if (method === 'PUT') {
        upload.parts.set(Number(query.get('partNumber')), body);
        return { status: 200, headers: { etag: tagOf(body) } };
      }
      uploads.delete(uploadId);
      if (method === 'DELETE') return { status: 204 };
      const parts = [...body.toString().matchAll(/<PartNumber>(\d+)<\/PartNumber><ETag>(.*?)<\/ETag>/g)];
      const named = parts.map(([, number, tag]) => ({ part: upload.parts.get(Number(number)), tag }));
      if (named.some(({ part, tag }) => part === undefined || tagOf(part) !== tag)) return reject(400, 'InvalidPart');
      put(upload.key, upload.meta, Buffer.concat(named.flatMap(({ part }) => part ?? [])));
      return xml('<CompleteMultipartUploadResult/>');
    }
    const meta = Object.fromEntries(
      Object.entries(headers).filter(([name]) => name.startsWith('x-amz-meta-')) as [string, string][],
    );
    switch (method) {
      case 'PUT':
        return put(key, meta, body);
      case 'POST': {
        const id = crypto.randomUUID();
        uploads.set(id, { key, meta, at: new Date(), parts: new Map() });
        return xml(`<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`);
      }
      case 'DELETE':
        objects.delete(key);
        return { status: 204 };
      default:
        return stored === undefined ? reject(404, 'NoSuchKey') : { status: 200, headers: stored.meta, body: stored.body };
    }
  };

  const serve = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const url = new URL(incoming.url ?? '', `http://${incoming.headers.host}`);
    const [, bucket = '', ...rest] = decodeURIComponent(url.pathname).split('/');
    const request: SeenRequest = { method: incoming.method ?? '', key: rest.join('/'), query: url.searchParams };
    seen.push(request);
    const fault = server.fault(request);
    if (fault === 'drop') return void incoming.socket.destroy();
    if (fault === 'hang') return;
    const reply =
      typeof fault === 'object'
        ? reject(fault.status, fault.code)
        : (problemOf(incoming, url, body, credentials, bucket) ?? handle(request, incoming.headers, body));
    if (fault === 'lose-response') return void incoming.socket.destroy();
    const sent = Buffer.from(reply.body ?? '');
    if (fault === 'flip' && sent.length > 0) sent[sent.length >> 1] = (sent[sent.length >> 1] ?? 0) ^ 1;
    response.writeHead(reply.status, { ...reply.headers, 'content-length': sent.length });
    if (fault === 'cut') response.write(sent.subarray(0, sent.length >> 1), () => incoming.socket.destroy());
    else response.end(incoming.method === 'HEAD' ? undefined : sent);
  };

  const listener = createServer((incoming, response) => {
    serve(incoming, response).catch(() => incoming.socket.destroy());
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const { port } = listener.address() as AddressInfo;
  const server: TestS3Server = {
    account: { ...credentials, bucketUrl: `http://127.0.0.1:${port}/${bucketName}` },
    objects,
    uploads,
    seen,
    fault: () => undefined,
    async close() {
      const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
      listener.closeAllConnections();
      await closed;
    },
  };
  return server;
}

/** What S3 checks in every request: who signed it, that it is unchanged, and the bucket. */
function problemOf(
  { method, headers }: IncomingMessage,
  url: URL,
  body: Buffer,
  { region, accessKeyId, secretAccessKey }: Omit<S3Account, 'bucketUrl'>,
  bucket: string,
): Reply | undefined {
  const pattern =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([^,]+), Signature=(\w+)$/;
  const [, id, day = '', signedRegion, names = '', signature] = pattern.exec(headers.authorization ?? '') ?? [];
  if (id === undefined) return reject(403, 'AccessDenied');
  if (id !== accessKeyId) return reject(403, 'InvalidAccessKeyId');
  if (signedRegion !== region) return reject(400, 'AuthorizationHeaderMalformed');
  const sum = String(headers['x-amz-content-sha256']);
  const query = [...url.searchParams]
    .map((pair) => pair.map(encodeStrictly).join('='))
    .sort()
    .join('&');
  const canonical = [
    method,
    url.pathname.split('/').map(decodeURIComponent).map(encodeStrictly).join('/'),
    query,
    ...names.split(';').map((name) => `${name}:${String(headers[name]).trim()}`),
    '',
    names,
    sum,
  ].join('\n');
  const scope = `${day}/${region}/s3/aws4_request`;
  const hashed = createHash('sha256').update(canonical).digest('hex');
  const text = `AWS4-HMAC-SHA256\n${String(headers['x-amz-date'])}\n${scope}\n${hashed}`;
  const key = scope.split('/').reduce<string | Buffer>((above, part) => hmac(above, part), `AWS4${secretAccessKey}`);
  if (hmac(key, text).toString('hex') !== signature) return reject(403, 'SignatureDoesNotMatch');
  if (createHash('sha256').update(body).digest('hex') !== sum) return reject(400, 'XAmzContentSHA256Mismatch');
  return bucket === bucketName ? undefined : reject(404, 'NoSuchBucket');
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

function encodeStrictly(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`);
}

function tagOf(body: Buffer): string {
  return `"${createHash('md5').update(body).digest('hex')}"`;
}

function xml(body: string): Reply {
  return { status: 200, headers: { 'content-type': 'application/xml' }, body: Buffer.from(`<?xml version="1.0"?>${body}`) };
}

function reject(status: number, code: string): Reply {
  return { ...xml(`<Error><Code>${code}</Code><Message>as &quot;asked&quot;</Message></Error>`), status };
}

function listObjects(objects: ReadonlyMap<string, StoredBytes>, query: URLSearchParams): Reply {
  const prefix = query.get('prefix') ?? '';
  const after = query.get('continuation-token') ?? '';
  const entries = new Map<string, string>();
  for (const [key, { at }] of [...objects].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (!key.startsWith(prefix)) continue;
    const end = query.has('delimiter') ? key.indexOf('/', prefix.length) : -1;
    if (end >= 0) {
      const folder = key.slice(0, end + 1);
      entries.set(folder, `<CommonPrefixes><Prefix>${folder}</Prefix></CommonPrefixes>`);
    } else {
      entries.set(key, `<Contents><Key>${key}</Key><LastModified>${at.toISOString()}</LastModified></Contents>`);
    }
  }
  const rest = [...entries].filter(([name]) => name > after);
  const page = rest.slice(0, pageKeys);
  const more = rest.length > page.length;
  const next = more ? `<NextContinuationToken>${page.at(-1)?.[0]}</NextContinuationToken>` : '';
  const listed = page.map(([, entry]) => entry).join('');
  return xml(`<ListBucketResult xmlns="s3"><IsTruncated>${more}</IsTruncated>${next}${listed}</ListBucketResult>`);
}

function listUploads(uploads: ReadonlyMap<string, { key: string; at: Date }>, prefix: string): Reply {
  const listed = [...uploads]
    .filter(([, { key }]) => key.startsWith(prefix))
    .map(
      ([id, { key, at }]) =>
        `<Upload><Key>${key}</Key><UploadId>${id}</UploadId><Initiated>${at.toISOString()}</Initiated></Upload>`,
    );
  return xml(`<ListMultipartUploadsResult>${listed.join('')}</ListMultipartUploadsResult>`);
}
