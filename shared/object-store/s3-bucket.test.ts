import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Bucket } from '#shared/object-store/bucket.ts';
import { checkBucket } from '#shared/object-store/check-bucket.ts';
import { createS3Bucket } from '#shared/object-store/s3-bucket.ts';
import { createS3Requests, type S3Account } from '#shared/object-store/s3-requests.ts';
import { openTestBucket, type TestBucket } from '#shared/object-store/testing/test-bucket.ts';

describe('a bucket', () => {
  let place: TestBucket;
  let bucket: Bucket;
  let directory: string;
  beforeAll(async () => {
    place = await openTestBucket();
    bucket = createS3Bucket({ ...place.account, prefix: place.prefix, partBytes: 5 * 1024 * 1024 });
    directory = await mkdtemp(join(tmpdir(), 'paas-bucket-'));
  });
  afterAll(async () => {
    for await (const { key } of bucket.listObjects('')) await bucket.deleteObject(key);
    await bucket.close();
    await place.close();
    await rm(directory, { recursive: true, force: true });
  });

  async function put(key: string, content: string | Buffer): Promise<string> {
    const path = join(directory, crypto.randomUUID());
    await writeFile(path, content);
    return await bucket.putFile(key, path);
  }

  async function get(key: string): Promise<string | undefined> {
    const path = join(directory, crypto.randomUUID());
    return (await bucket.getFile(key, path)) === undefined ? undefined : await readFile(path, 'utf8');
  }

  const keysBelow = async (prefix: string): Promise<string[]> =>
    (await Array.fromAsync(bucket.listObjects(prefix))).map(({ key }) => key);

  it('returns what was stored, with its digest, and the newest version', async () => {
    const sum = await put('one/a.pack', 'first');
    expect(sum).toBe(createHash('sha256').update('first').digest('hex'));
    expect(await get('one/a.pack')).toBe('first');
    await put('one/a.pack', 'second');
    expect(await get('one/a.pack')).toBe('second');
    await put('one/empty.links', '');
    expect(await get('one/empty.links')).toBe('');
  });

  it('reports missing objects, and deletes objects whether they exist or not', async () => {
    expect(await get('one/none')).toBeUndefined();
    expect(await bucket.hasObject('one/none')).toBe(false);
    await bucket.deleteObject('one/none');
    await put('one/gone', 'x');
    expect(await bucket.hasObject('one/gone')).toBe(true);
    await bucket.deleteObject('one/gone');
    expect(await bucket.hasObject('one/gone')).toBe(false);
  });

  it('stores a large file in parts, and returns the same bytes', async () => {
    const content = randomBytes(11 * 1024 * 1024 + 7);
    const sum = await put('large/b.pack', content);
    expect(sum).toBe(createHash('sha256').update(content).digest('hex'));
    const path = join(directory, 'large');
    expect(await bucket.getFile('large/b.pack', path)).toBe(sum);
    expect((await readFile(path)).equals(content)).toBe(true);
    expect(await bucket.abortUploads(0)).toBe(0);
  });

  it('lists objects in order over many pages, each folder once, and ages', async () => {
    const keys = Array.from({ length: 11 }, (_, i) => `many/${String.fromCharCode(97 + i)}/${i % 3}.idx`);
    await Promise.all(keys.map((key) => put(key, key)));
    await put('many/a/more.idx', 'x');
    expect(await keysBelow('many/')).toEqual([...keys, 'many/a/more.idx'].sort());
    expect(await keysBelow('nothing/')).toEqual([]);
    expect(await Array.fromAsync(bucket.listFolders('many/'))).toEqual(keys.map((key) => key.split('/')[1]));
    expect(await Array.fromAsync(bucket.listFolders(''))).toContain('many');
    for await (const { ageSeconds } of bucket.listObjects('many/')) expect(ageSeconds).toBeLessThan(120);
  });

  it('stays within its prefix', async () => {
    const other = createS3Bucket({ ...place.account, prefix: `${place.prefix}inner/` });
    try {
      await put('inner/x', 'mine');
      await put('outer', 'not below it');
      expect((await Array.fromAsync(other.listObjects(''))).map(({ key }) => key)).toEqual(['x']);
    } finally {
      await other.close();
    }
  });

  it('aborts unfinished uploads that are old enough', async () => {
    const requests = createS3Requests(place.account, { now: () => new Date(), sleep: async () => undefined });
    try {
      const key = `${place.prefix}half.pack`;
      await requests.send({ method: 'POST', key, query: { uploads: '' } }, async () => undefined);
      expect(await bucket.abortUploads(3600)).toBe(0);
      expect(await bucket.abortUploads(0)).toBe(1);
      expect(await bucket.abortUploads(0)).toBe(0);
      expect(await bucket.hasObject('half.pack')).toBe(false);
    } finally {
      await requests.close();
    }
  });

  it('leaves no file behind for a missing object', async () => {
    const target = await mkdtemp(join(directory, 'target-'));
    expect(await bucket.getFile('nothing', join(target, 'file'))).toBeUndefined();
    expect(await readdir(target)).toEqual([]);
  });

  it('passes the check at the start, which leaves nothing behind', async () => {
    const before = await keysBelow('');
    await checkBucket(bucket, directory);
    expect(await keysBelow('')).toEqual(before);
  });

  it.each<[string, (account: S3Account) => Partial<S3Account>, RegExp]>([
    ['a wrong secret', () => ({ secretAccessKey: 'wrong' }), /^SignatureDoesNotMatch$/],
    // versitygw has a code of its own.
    ['an unknown key', () => ({ accessKeyId: 'NOBODY' }), /^(InvalidAccessKeyId|XAdminUserNotFound)$/],
    ['a missing bucket', ({ bucketUrl }) => ({ bucketUrl: bucketUrl.replace(/[^/]+$/, 'nowhere') }), /^NoSuchBucket$/],
    ['a closed port', () => ({ bucketUrl: 'http://127.0.0.1:1/bucket' }), /^ECONNREFUSED$/],
  ])('fails the check at the start with the cause: %s', async (_, changed, code) => {
    const patience = { connectMilliseconds: 30_000, idleMilliseconds: 30_000, attempts: 1, backoffMilliseconds: 1 };
    const wrong = createS3Bucket({ ...place.account, ...changed(place.account), prefix: place.prefix, patience });
    try {
      await expect(checkBucket(wrong, directory)).rejects.toMatchObject({
        name: 'ObjectStoreError',
        code: expect.stringMatching(code),
      });
    } finally {
      await wrong.close();
    }
  });
});
