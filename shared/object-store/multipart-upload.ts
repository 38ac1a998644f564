import { type FileHandle, open } from 'node:fs/promises';
import { ObjectStoreError } from '#shared/object-store/object-store-error.ts';
import { rejection, type S3Requests } from '#shared/object-store/s3-requests.ts';
import { textOf } from '#shared/object-store/xml.ts';

/** Parts of one upload that are sent at once, and are in memory. */
const partsAtOnce = 2;

/**
 * Uploads a file in parts. Each part can be sent again by itself. When the upload fails, the store keeps nothing of it.
 *
 * @param partBytes size of each part but the last
 * @param headers to store with the object
 * @throws ObjectStoreError
 */
export async function uploadInParts(
  requests: S3Requests,
  key: string,
  path: string,
  partBytes: number,
  headers: Readonly<Record<string, string>>,
): Promise<void> {
  const begun = await requests.send({ method: 'POST', key, query: { uploads: '' }, headers }, ({ text }) => text());
  const uploadId = textOf(begun, 'UploadId') ?? '';
  try {
    const tags = await sendParts(requests, key, uploadId, path, partBytes);
    await complete(requests, key, uploadId, tags, headers);
  } catch (error) {
    // If this fails too, a sweep aborts the upload later.
    await requests.send({ method: 'DELETE', key, query: { uploadId } }, async () => undefined).catch(() => undefined);
    throw error;
  }
}

async function sendParts(
  requests: S3Requests,
  key: string,
  uploadId: string,
  path: string,
  partBytes: number,
): Promise<readonly string[]> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    const tags = Array.from({ length: Math.ceil(size / partBytes) }, () => '');
    let next = 0;
    const sendNext = async (): Promise<void> => {
      while (next < tags.length) {
        const number = next++;
        const body = await readPart(file, number * partBytes, Math.min(partBytes, size - number * partBytes));
        const query = { partNumber: String(number + 1), uploadId };
        tags[number] = await requests.send({ method: 'PUT', key, query, body }, async ({ headers: { etag = '' } }) => etag);
      }
    };
    const senders = Array.from({ length: partsAtOnce }, sendNext);
    // When one has failed, the others still read the file until they end.
    await Promise.allSettled(senders);
    await Promise.all(senders);
    return tags;
  } finally {
    await file.close();
  }
}

async function readPart(file: FileHandle, start: number, length: number): Promise<Uint8Array> {
  const part = Buffer.allocUnsafe(length);
  for (let at = 0; at < part.length; ) {
    const { bytesRead } = await file.read(part, at, part.length - at, start + at);
    if (bytesRead === 0) throw new Error('a file became shorter while it was uploaded');
    at += bytesRead;
  }
  return part;
}

async function complete(
  requests: S3Requests,
  key: string,
  uploadId: string,
  tags: readonly string[],
  headers: Readonly<Record<string, string>>,
): Promise<void> {
  const parts = tags.map((tag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${tag}</ETag></Part>`).join('');
  const body = Buffer.from(`<CompleteMultipartUpload>${parts}</CompleteMultipartUpload>`);
  try {
    await requests.send({ method: 'POST', key, query: { uploadId }, body }, async ({ text }) => {
      // The store may take so long that it answers with 200 first, and with an error afterwards.
      const response = await text();
      if (response.includes('<Error>')) throw rejection(`completing ${key}`, 500, response);
    });
  } catch (error) {
    // An earlier attempt completed the upload, and its response was lost.
    const done = error instanceof ObjectStoreError && error.code === 'NoSuchUpload' && (await isStored(requests, key, headers));
    if (!done) throw error;
  }
}

async function isStored(requests: S3Requests, key: string, headers: Readonly<Record<string, string>>): Promise<boolean> {
  return await requests
    .send({ method: 'HEAD', key }, async (found) =>
      Object.entries(headers).every(([name, value]) => found.headers[name] === value),
    )
    .catch(() => false);
}
