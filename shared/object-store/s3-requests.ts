import { hash } from 'node:crypto';
import { AwsV4Signer } from 'aws4fetch';
import { Agent, type Dispatcher, request } from 'undici';
import type { Clock } from '#shared/clock.ts';
import { ObjectStoreError } from '#shared/object-store/object-store-error.ts';
import { textOf } from '#shared/object-store/xml.ts';

export interface S3Account {
  /** Of the bucket, path style, without a slash at the end: `https://s3.example.com/bucket`. */
  bucketUrl: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
}

/** How long a store may take, and how often it is asked again. */
export interface S3Patience {
  connectMilliseconds: number;
  /** Without a byte from the store. */
  idleMilliseconds: number;
  /** In all, the first among them. */
  attempts: number;
  /** Before the second attempt; doubled for each further one, and cut by chance to as little as half. */
  backoffMilliseconds: number;
}

const defaultPatience: S3Patience = {
  connectMilliseconds: 5000,
  idleMilliseconds: 20_000,
  attempts: 5,
  backoffMilliseconds: 300,
};

export interface S3Request {
  method: 'GET' | 'PUT' | 'HEAD' | 'POST' | 'DELETE';
  /** Within the bucket; '' for the bucket itself. */
  key: string;
  query?: Readonly<Record<string, string>>;
  headers?: Readonly<Record<string, string>>;
  body?: Uint8Array;
}

export interface S3Response {
  status: number;
  headers: Readonly<Record<string, string | undefined>>;
  body: AsyncIterable<Uint8Array>;
  text(): Promise<string>;
}

/** Sends signed requests to one bucket. */
export interface S3Requests {
  /**
   * Sends until it is answered by success, and `read` has taken the answer: with back-off after network faults, time-outs and
   * the refusals that pass (5xx, SlowDown). So a request must be harmless to repeat.
   *
   * @throws ObjectStoreError when it was refused for good, or every attempt failed; whatever else `read` throws, at once
   */
  send<T>(asked: S3Request, read: (response: S3Response) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

const connections = 16;
const passingStatuses = new Set([408, 429, 500, 502, 503, 504]);
/** Of status 400 and 409, and yet worth another try. */
const passingCodes = new Set(['RequestTimeout', 'OperationAborted', 'BadDigest', 'ChecksumMismatch', 'IncompleteBody']);

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
    for (const [name, value] of Object.entries(query ?? {})) url.searchParams.set(name, value);
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
      // Signed, so the store refuses a body that was changed on its way.
      headers: { ...headers, 'x-amz-content-sha256': hash('sha256', body ?? '') },
    }).sign();
  };

  const once = async <T>(asked: S3Request, read: (response: S3Response) => Promise<T>): Promise<T> => {
    const what = describe(asked);
    const { url, headers } = await sign(asked);
    const answer = await request(url, {
      dispatcher: agent,
      method: asked.method,
      headers: Object.fromEntries(headers),
      body: asked.body ?? null,
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
    if (status < 200 || status > 299) throw refusal(what, status, await text());
    try {
      const result = await read({ status, headers: answer.headers as S3Response['headers'], body, text });
      // Read or not, it must be over before the connection serves again.
      await answer.body.dump();
      return result;
    } catch (error) {
      answer.body.destroy();
      throw error;
    }
  };

  return {
    async send(asked, read) {
      for (let attempt = 1; ; attempt++) {
        try {
          return await once(asked, read);
        } catch (error) {
          if (attempt >= attempts || !(error instanceof ObjectStoreError) || !passes(error)) throw error;
          const longest = backoffMilliseconds * 2 ** (attempt - 1);
          await clock.sleep(longest * (0.5 + Math.random() / 2));
        }
      }
    },
    close: () => agent.destroy(),
  };
}

function passes({ status, code }: ObjectStoreError): boolean {
  return status === undefined || passingStatuses.has(status) || passingCodes.has(code);
}

/** What a store that refuses says of it, which may also be the body of a success (S3: `CompleteMultipartUpload`). */
export function refusal(what: string, status: number, xml: string): ObjectStoreError {
  const nameless = status === 404 ? 'NotFound' : status === 403 ? 'Forbidden' : 'refused';
  return new ObjectStoreError(what, textOf(xml, 'Code') ?? nameless, status, textOf(xml, 'Message'));
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
  return new ObjectStoreError(what, codes[0] ?? 'no answer', undefined, error instanceof Error ? error.message : '');
}

export function describe({ method, key, query }: Pick<S3Request, 'method' | 'key' | 'query'>): string {
  const asked = Object.keys(query ?? {}).join(', ');
  return `${method} ${key === '' ? 'bucket' : key}${asked === '' ? '' : ` (${asked})`}`;
}
