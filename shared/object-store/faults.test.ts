import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Bucket } from '#shared/object-store/bucket.ts';
import { createS3Bucket } from '#shared/object-store/s3-bucket.ts';
import { type Fault, openTestS3Server, type TestS3Server } from '#shared/object-store/testing/test-s3-server.ts';

const attempts = 4;
const partBytes = 100_000;

describe('a failing store', () => {
  let server: TestS3Server;
  let bucket: Bucket;
  let directory: string;
  let file: string;
  beforeEach(async () => {
    server = await openTestS3Server();
    bucket = openBucket(30_000);
    directory = await mkdtemp(join(tmpdir(), 'paas-bucket-'));
    file = join(directory, 'file');
    await writeFile(file, 'the content');
  });
  afterEach(async () => {
    await bucket.close();
    await server.close();
    await rm(directory, { recursive: true, force: true });
  });

  /** A response may take long on a busy machine: short time-outs are only for responses that never come. */
  function openBucket(idleMilliseconds: number): Bucket {
    const patience = { connectMilliseconds: 30_000, idleMilliseconds, attempts, backoffMilliseconds: 1 };
    return createS3Bucket({ ...server.account, prefix: 'p/', patience, partBytes });
  }

  /** Lets the next requests fail, one after the other. */
  function failNext(...faults: (Fault | undefined)[]): void {
    server.fault = () => faults.shift();
  }

  const temporary: [string, Fault][] = [
    ['a response of 500', { status: 500, code: 'InternalError' }],
    ['SlowDown', { status: 503, code: 'SlowDown' }],
    ['a lost connection', 'drop'],
    ['a lost response', 'lose-response'],
  ];
  it.each(temporary)('gets the request again after %s', async (_, fault) => {
    failNext(fault, fault);
    await bucket.putFile('a', file);
    expect(server.objects.get('p/a')?.body.toString()).toBe('the content');
    failNext(fault);
    const target = join(directory, 'target');
    await bucket.getFile('a', target);
    expect(await readFile(target, 'utf8')).toBe('the content');
    failNext(fault);
    expect(await Array.fromAsync(bucket.listObjects(''))).toHaveLength(1);
    failNext(fault);
    await bucket.deleteObject('a');
    expect(server.objects.size).toBe(0);
  });

  it('gets the request again when there is no response', async () => {
    const hasty = openBucket(500);
    try {
      failNext('hang', 'hang');
      await hasty.putFile('a', file);
      expect(server.objects.get('p/a')?.body.toString()).toBe('the content');
    } finally {
      await hasty.close();
    }
  });

  it.each<[string, Fault]>([
    ['ends early', 'cut'],
    ['arrives changed', 'flip'],
  ])('is asked again for an object that %s, and the file is never incomplete', async (_, fault) => {
    await bucket.putFile('a', file);
    failNext(fault, fault);
    const target = join(directory, 'target');
    await bucket.getFile('a', target);
    expect(await readFile(target, 'utf8')).toBe('the content');

    server.fault = () => fault;
    await expect(bucket.getFile('a', join(directory, 'never'))).rejects.toMatchObject({ name: 'ObjectStoreError' });
    expect(await readdir(directory)).not.toContain('never');
  });

  it('gets a limited number of attempts, and its last error is thrown', async () => {
    server.fault = () => ({ status: 503, code: 'SlowDown' });
    await expect(bucket.putFile('a', file)).rejects.toMatchObject({ status: 503, code: 'SlowDown' });
    expect(server.seen).toHaveLength(attempts);
  });

  it('gets a request once when the error is permanent', async () => {
    server.fault = () => ({ status: 403, code: 'AccessDenied' });
    await expect(bucket.putFile('a', file)).rejects.toMatchObject({ status: 403, code: 'AccessDenied' });
    expect(server.seen).toHaveLength(1);
  });

  it('stores a large file although every request fails once, even when only responses are lost', async () => {
    const content = randomBytes(1.5 * partBytes);
    await writeFile(file, content);
    for (const fault of ['drop', 'lose-response', { status: 503, code: 'SlowDown' }] as const) {
      const failed = new Set<string>();
      server.fault = ({ method, key, query }) => {
        // An upload may be begun twice: the sweep aborts the first.
        const name = `${method} ${key} ${query.get('partNumber')} ${query.has('uploads')}`;
        if (failed.has(name)) return undefined;
        failed.add(name);
        return fault;
      };
      await bucket.putFile('large', file);
      expect(server.objects.get('p/large')?.body.equals(content)).toBe(true);
      server.objects.get('p/large')?.body.fill(0);
    }
    server.fault = () => undefined;
    await bucket.abortUploads(0);
    expect(server.uploads.size).toBe(0);
  });

  it('keeps nothing of a large file that it could not store', async () => {
    await writeFile(file, randomBytes(1.5 * partBytes));
    server.fault = ({ query }) => (query.get('partNumber') === '2' ? { status: 503, code: 'SlowDown' } : undefined);
    await expect(bucket.putFile('large', file)).rejects.toMatchObject({ code: 'SlowDown' });
    expect(server.objects.size).toBe(0);
    expect(server.uploads.size).toBe(0);
  });

  it('must confirm an upload at its end', async () => {
    await writeFile(file, randomBytes(1.5 * partBytes));
    server.fault = ({ method, query }) =>
      method === 'POST' && query.has('uploadId') ? { status: 200, code: 'InternalError' } : undefined;
    await expect(bucket.putFile('large', file)).rejects.toMatchObject({ code: 'InternalError' });
    expect(server.objects.size).toBe(0);
  });

  it('never gets credentials into an error', async () => {
    server.fault = () => ({ status: 403, code: 'SignatureDoesNotMatch' });
    const error = await bucket.putFile('a', file).catch((thrown: unknown) => thrown);
    const text = `${String(error)} ${JSON.stringify(error)} ${(error as Error).stack}`;
    expect(text).toContain('SignatureDoesNotMatch');
    expect(text).not.toContain(server.account.secretAccessKey);
    expect(text).not.toContain(server.account.accessKeyId);
  });
});
