import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, readFile, rm, stat } from 'node:fs/promises';
import { type Clock, systemClock } from '#shared/clock.ts';
import type { Bucket } from '#shared/object-store/bucket.ts';
import { uploadInParts } from '#shared/object-store/multipart-upload.ts';
import { ObjectStoreError } from '#shared/object-store/object-store-error.ts';
import {
  createS3Requests,
  describe,
  type S3Account,
  type S3Patience,
  type S3Request,
  type S3Requests,
  type S3Response,
} from '#shared/object-store/s3-requests.ts';
import { elements, textOf } from '#shared/object-store/xml.ts';

/** Which bucket, and how to use it. */
export interface S3BucketOptions extends S3Account {
  /** The prefix of every key: '', or with a slash at the end as in `paas/production/`. */
  prefix: string;
  clock?: Clock;
  patience?: S3Patience | undefined;
  /** Larger files are sent in parts of this size, two of them in memory. S3 accepts 10,000 parts of at least 5 MiB. */
  partBytes?: number;
}

const defaultPartBytes = 8 * 1024 * 1024;

/** The digest that is stored with each object, for `getFile` to check. The store's ETag of a large object is not a digest of it. */
const digestHeader = 'x-amz-meta-sha256';

/** A bucket of any store with the S3 protocol: AWS, MinIO, Garage, Ceph, R2, … */
export function createS3Bucket(options: S3BucketOptions): Bucket {
  const { prefix, clock = systemClock, patience, partBytes = defaultPartBytes, ...account } = options;
  const requests = createS3Requests(account, clock, patience);
  const full = (key: string): string => `${prefix}${key}`;
  return {
    async putFile(key, path) {
      const { size } = await stat(path);
      if (size > partBytes) {
        const digest = await digestOf(path);
        await uploadInParts(requests, full(key), path, partBytes, { [digestHeader]: digest });
        return digest;
      }
      const body = await readFile(path);
      const digest = createHash('sha256').update(body).digest('hex');
      const request = { method: 'PUT', key: full(key), headers: { [digestHeader]: digest }, body } as const;
      await requests.send(request, async () => undefined);
      return digest;
    },

    async getFile(key, path) {
      const request = { method: 'GET', key: full(key) } as const;
      return await unlessMissing(requests.send(request, (response) => writeVerified(response, path, describe(request))));
    },

    async hasObject(key) {
      const found = await unlessMissing(requests.send({ method: 'HEAD', key: full(key) }, async () => true));
      return found === true;
    },

    async *listObjects(below) {
      for await (const { xml, at } of pages(requests, { prefix: full(below) })) {
        for (const content of elements(xml, 'Contents')) {
          const key = (textOf(content, 'Key') ?? '').slice(prefix.length);
          yield { key, ageSeconds: ageOf(textOf(content, 'LastModified'), at) };
        }
      }
    },

    async *listFolders(below) {
      for await (const { xml } of pages(requests, { prefix: full(below), delimiter: '/' })) {
        for (const found of elements(xml, 'CommonPrefixes')) {
          yield (textOf(found, 'Prefix') ?? '').slice(full(below).length).replace(/\/$/, '');
        }
      }
    },

    async deleteObject(key) {
      await unlessMissing(requests.send({ method: 'DELETE', key: full(key) }, async () => undefined));
    },

    async abortUploads(olderThanSeconds) {
      // The first page only: the rest is aborted next time.
      const query = { uploads: '', prefix };
      const { xml, at } = await requests.send({ method: 'GET', key: '', query }, readPage);
      let aborted = 0;
      for (const upload of elements(xml, 'Upload')) {
        if (ageOf(textOf(upload, 'Initiated'), at) < olderThanSeconds) continue;
        const [key = '', uploadId = ''] = [textOf(upload, 'Key'), textOf(upload, 'UploadId')];
        await unlessMissing(requests.send({ method: 'DELETE', key, query: { uploadId } }, async () => undefined));
        aborted++;
      }
      return aborted;
    },

    close: () => requests.close(),
  };
}

/** Writes a response to a file in small pieces. The file is deleted when the response is incomplete or changed. */
async function writeVerified({ headers, body }: S3Response, path: string, what: string): Promise<string> {
  const digest = createHash('sha256');
  const file = await open(path, 'w', 0o600);
  try {
    for await (const chunk of body) {
      digest.update(chunk);
      await file.writeFile(chunk);
    }
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await file.close();
  }
  const arrived = digest.digest('hex');
  if (arrived === headers[digestHeader]) return arrived;
  await rm(path, { force: true });
  throw new ObjectStoreError(what, 'ChecksumMismatch', 200, 'the content does not match the stored digest');
}

interface Page {
  xml: string;
  /** The store's time, in milliseconds since the epoch. */
  at: number;
}

async function readPage({ headers, text }: S3Response): Promise<Page> {
  return { xml: await text(), at: Date.parse(headers['date'] ?? '') || Date.now() };
}

async function* pages(requests: S3Requests, query: S3Request['query']): AsyncIterable<Page> {
  for (let token: string | undefined; ; ) {
    const request = { method: 'GET', key: '', query: { 'list-type': '2', ...query, 'continuation-token': token } } as const;
    const page = await requests.send(request, readPage);
    yield page;
    if (textOf(page.xml, 'IsTruncated') !== 'true') return;
    token = textOf(page.xml, 'NextContinuationToken');
  }
}

function ageOf(time: string | undefined, at: number): number {
  return Math.max(0, (at - Date.parse(time ?? '')) / 1000);
}

async function unlessMissing<T>(result: Promise<T>): Promise<T | undefined> {
  try {
    return await result;
  } catch (error) {
    const missing = error instanceof ObjectStoreError && error.status === 404 && error.code !== 'NoSuchBucket';
    if (!missing) throw error;
    return undefined;
  }
}

async function digestOf(path: string): Promise<string> {
  const digest = createHash('sha256');
  for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 })) digest.update(chunk as Buffer);
  return digest.digest('hex');
}
