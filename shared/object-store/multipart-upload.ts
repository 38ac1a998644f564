import { type FileHandle, open } from 'node:fs/promises';
import { ObjectStoreError } from '#shared/object-store/object-store-error.ts';
import { refusal, type S3Requests } from '#shared/object-store/s3-requests.ts';
import { textOf } from '#shared/object-store/xml.ts';

/** Parts of one upload under way at once: so many are held in memory. */
const partsAtOnce = 2;

/**
 * Uploads a file in parts, of which each can be sent again. When it fails nothing is left of it in the store.
 *
 * @param partBytes of each part but the last
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
    // What cannot be called off now is swept later.
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
    const sender = async (): Promise<void> => {
      while (next < tags.length) {
        const number = next++;
        const body = await readPart(file, number * partBytes, Math.min(partBytes, size - number * partBytes));
        const query = { partNumber: String(number + 1), uploadId };
        tags[number] = await requests.send({ method: 'PUT', key, query, body }, async ({ headers: { etag = '' } }) => etag);
      }
    };
    const senders = Array.from({ length: partsAtOnce }, sender);
    // Also when one has failed, the file is read by the others until they end.
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
      // It may take the store so long that it says 200 first, and what went wrong afterwards.
      const answer = await text();
      if (answer.includes('<Error>')) throw refusal(`completing ${key}`, 500, answer);
    });
  } catch (error) {
    // The attempt whose answer was lost had done it.
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
