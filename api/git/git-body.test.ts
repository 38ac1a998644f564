import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { readRequestBody } from '#api/git/git-body.ts';
import { AppError } from '#shared/errors.ts';

function gzipped(body: ReadableStream<Uint8Array<ArrayBuffer>> | Buffer): Request {
  return new Request('http://localhost/', {
    method: 'POST',
    body: body instanceof Buffer ? new Uint8Array(body) : body,
    headers: { 'content-encoding': 'gzip' },
    duplex: 'half',
  } as RequestInit);
}

async function readAll(request: Request): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of readRequestBody(request)) pieces.push(piece);
  return Buffer.concat(pieces);
}

const valid = gzipSync('0032want and so on, for long enough to be compressed'.repeat(10));

it('decompresses gzip', async () => {
  expect((await readAll(gzipped(valid))).toString()).toContain('0032want');
});

it.each([
  ['is truncated', valid.subarray(0, -10)],
  ['is empty', Buffer.alloc(0)],
  ['is not compressed', Buffer.from('0032want and so on')],
  ['has a wrong checksum', Buffer.concat([valid.subarray(0, -8), Buffer.alloc(8)])],
  ['is followed by other data', Buffer.concat([valid, Buffer.from('more')])],
])('reports gzip that %s to the client, and not to the operator', async (_what, body) => {
  await expect(readAll(gzipped(body))).rejects.toThrow(AppError);
});

it('decompresses no more of a body than its reader takes', async () => {
  const megabyte = 1024 * 1024;
  // 64 MiB in 64 KiB, repeated: members of gzip in a row are valid gzip.
  const part = new Uint8Array(gzipSync(Buffer.alloc(64 * megabyte)));
  let sent = 0;
  const bomb = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      sent++;
      if (sent > 1000) controller.close();
      else controller.enqueue(part);
    },
  });
  let bytes = 0;
  let longest = 0;
  const before = process.memoryUsage.rss();
  for await (const piece of readRequestBody(gzipped(bomb))) {
    bytes += piece.length;
    longest = Math.max(longest, piece.length);
    if (bytes > 20 * megabyte) break;
  }
  expect(longest).toBeLessThanOrEqual(megabyte);
  expect(sent).toBeLessThan(10);
  expect(process.memoryUsage.rss() - before).toBeLessThan(200 * megabyte);
});
