import { hash } from 'node:crypto';
import { AwsV4Signer } from 'aws4fetch';
import { Agent, type Dispatcher, request } from 'undici/index.js';
import type { Clock } from '#shared/clock.ts';
import { ObjectStoreError } from '#shared/object-store/object-store-error.ts';
import { textOf } from '#shared/object-store/xml.ts';

/** A bucket, and the credentials for it. */
export interface S3Account {
  /** URL of the bucket in path style, without a slash at the end: `https://s3.example.com/bucket`. */
  bucketUrl: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
}

/** How long requests may take, and how often they are repeated. */
export interface S3Patience {
  connectMilliseconds: number;
  /** How long the store may send nothing. */
  idleMilliseconds: number;
  /** How often a request is sent at most. */
  attempts: number;
  /** Longest wait before the second attempt, doubled for each further one. The wait is random, and at least half as long. */
  backoffMilliseconds: number;
}

const defaultPatience: S3Patience = {
  connectMilliseconds: 5000,
  idleMilliseconds: 20_000,
  attempts: 5,
  backoffMilliseconds: 300,
};

/** A request to the bucket. */
export interface S3Request {
  method: 'GET' | 'PUT' | 'HEAD' | 'POST' | 'DELETE';
  /** Of the object; '' for the bucket itself. */
  key: string;
  /** Undefined values are left out. */
  query?: Readonly<Record<string, string | undefined>>;
  headers?: Readonly<Record<string, string>>;
  body?: Uint8Array;
}

/** A successful response. */
export interface S3Response {
  status: number;
  headers: Readonly<Record<string, string | undefined>>;
  body: AsyncIterable<Uint8Array>;
  text(): Promise<string>;
}

/** Sends signed requests to one bucket. */
export interface S3Requests {
  /**
   * Sends a request until it succeeds and `read` has read the response. Waits and repeats it after network faults, time-outs and
   * temporary errors (5xx, SlowDown). A request must therefore be harmless to repeat.
   *
   * @throws ObjectStoreError for a permanent error, or when every attempt failed; other errors of `read` at once
   */
  send<T>(s3Request: S3Request, read: (response: S3Response) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

const connections = 16;
const temporaryStatuses = new Set([408, 429, 500, 502, 503, 504]);
/** Codes of temporary errors with status 400 or 409. */
const temporaryCodes = new Set(['RequestTimeout', 'OperationAborted', 'BadDigest', 'ChecksumMismatch', 'IncompleteBody']);

/** Opens connections to one bucket. */
export function createS3Requests(account: S3Account, clock: Clock, patience: S3Patience = defaultPatience): S3Requests {
  const { connectMilliseconds, idleMilliseconds, attempts, backoffMilliseconds } = patience;
  const agent = new Agent({
    connections,
    connect: { timeout: connectMilliseconds },
    headersTimeout: idleMilliseconds,
    bodyTimeout: idleMilliseconds,
  });
  const signingKeys = new Map<string, ArrayBuffer>();

  const sign = async ({ method, key, query, headers, body }: S3Request): Promise<{ url: URL; headers: Headers }> => {
    const url = new URL(key === '' ? account.bucketUrl : `${account.bucketUrl}/${key}`);
    for (const [name, value] of Object.entries(query ?? {})) if (value !== undefined) url.searchParams.set(name, value);
    return await new AwsV4Signer({
      ...account,
      method,
      url: url.href,
      service: 's3',
      cache: signingKeys,
      datetime: clock
        .now()
        .toISOString()
        .replace(/[:-]|\.\d{3}/g, ''),
      // Signed, so that the store rejects a body that was changed on its way.
      headers: { ...headers, 'x-amz-content-sha256': hash('sha256', body ?? '') },
    }).sign();
  };

  const sendOnce = async <T>(s3Request: S3Request, read: (response: S3Response) => Promise<T>): Promise<T> => {
    const what = describe(s3Request);
    const { url, headers } = await sign(s3Request);
    const answer = await request(url, {
      dispatcher: agent,
      method: s3Request.method,
      headers: Object.fromEntries(headers),
      body: s3Request.body ?? null,
    }).catch((error: unknown) => {
      throw networkError(what, error);
    });
    const body = received(what, answer.body);
    const text = async (): Promise<string> => {
      const chunks: Uint8Array[] = [];
      for await (const chunk of body) chunks.push(chunk);
      return Buffer.concat(chunks).toString('utf8');
    };
    const { statusCode: status } = answer;
    if (status < 200 || status > 299) throw rejection(what, status, await text());
    try {
      const result = await read({ status, headers: answer.headers as S3Response['headers'], body, text });
      // The connection is used again only when the whole body was read.
      await answer.body.dump();
      return result;
    } catch (error) {
      answer.body.destroy();
      throw error;
    }
  };

  return {
    async send(s3Request, read) {
      for (let attempt = 1; ; attempt++) {
        try {
          return await sendOnce(s3Request, read);
        } catch (error) {
          if (attempt >= attempts || !(error instanceof ObjectStoreError) || !isTemporary(error)) throw error;
          const longest = backoffMilliseconds * 2 ** (attempt - 1);
          await clock.sleep(longest * (0.5 + Math.random() / 2));
        }
      }
    },
    close: () => agent.destroy(),
  };
}

function isTemporary({ status, code }: ObjectStoreError): boolean {
  return status === undefined || temporaryStatuses.has(status) || temporaryCodes.has(code);
}

/** The error in a response. A successful response can contain one, too (S3: `CompleteMultipartUpload`). */
export function rejection(what: string, status: number, xml: string): ObjectStoreError {
  const defaultCode = status === 404 ? 'NotFound' : status === 403 ? 'Forbidden' : 'rejected';
  return new ObjectStoreError(what, textOf(xml, 'Code') ?? defaultCode, status, textOf(xml, 'Message'));
}

async function* received(what: string, body: Dispatcher.ResponseData['body']): AsyncIterable<Uint8Array> {
  try {
    yield* body as AsyncIterable<Uint8Array>;
  } catch (error) {
    throw networkError(what, error);
  }
}

function networkError(what: string, error: unknown): ObjectStoreError {
  const causes = [error, ...(error instanceof AggregateError ? (error.errors as unknown[]) : [])];
  const codes = causes.flatMap((cause) => (cause instanceof Error && 'code' in cause ? [String(cause.code)] : []));
  return new ObjectStoreError(what, codes[0] ?? 'no response', undefined, error instanceof Error ? error.message : '');
}

/** A short description of a request for messages: `GET key`, `PUT key (partNumber, uploadId)`. */
export function describe({ method, key, query }: Pick<S3Request, 'method' | 'key' | 'query'>): string {
  const names = Object.entries(query ?? {}).flatMap(([name, value]) => (value === undefined ? [] : name));
  return `${method} ${key === '' ? 'bucket' : key}${names.length === 0 ? '' : ` (${names.join(', ')})`}`;
}
