import { createHash, randomBytes } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createOutsideSourceHosts } from '#shared/sources/outside-source-hosts.ts';
import { encodeEntry, paxEntry, tarOf } from '#shared/sources/testing/tar-builder.ts';
import { runChecked } from '#test/support/run-program.ts';

const mebibyte = 1024 * 1024;
const archiveLimits = { packedBytes: mebibyte, bytes: 4 * mebibyte, entries: 1000, pathBytes: 2048, depth: 20 };
let directory: string;
let server: Server;
let base: string;
/** By path, what is served. */
const served = new Map<string, Uint8Array>();

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paas-archives-'));
  server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    if (pathname === '/moved') return response.writeHead(302, { location: '/archive?second=secret' }).end();
    if (pathname === '/inside') return response.writeHead(302, { location: 'http://metadata.test/archive' }).end();
    if (pathname === '/silent') return;
    const body = served.get(pathname);
    return body === undefined ? response.writeHead(403).end() : response.end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  base = `http://files.test:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  expect(await readdir(join(directory, 'spool'))).toEqual([]);
  await rm(directory, { recursive: true });
});

async function fetch(path: string, sha256?: string, seconds = 20) {
  const hosts = createOutsideSourceHosts({
    allowPrivate: true,
    seconds,
    directory: join(directory, 'spool'),
    archiveLimits,
    lookUp: async (host) => {
      if (host === 'files.test') return [{ address: '127.0.0.1', family: 4 }];
      throw new Error(`nobody was to ask for ${host}`);
    },
  });
  return hosts.fetchArchive({ url: `${base}${path}`, sha256, signal: new AbortController().signal });
}

/** What a build would write: mode and content by path. */
async function unpack(packed: Uint8Array): Promise<Record<string, string>> {
  served.set('/archive', packed);
  const archive = await fetch('/archive?signature=secret');
  try {
    const read = async (): Promise<Record<string, string>> => {
      const files: Record<string, string> = {};
      for await (const { path, kind, content } of archive.read()) {
        const chunks = content instanceof Uint8Array ? [content] : await Array.fromAsync(content);
        files[path] = `${kind} ${Buffer.concat(chunks).toString()}`;
      }
      return files;
    };
    const files = await read();
    expect(await read()).toEqual(files);
    return files;
  } finally {
    await archive.discard();
  }
}

async function refusal(packed: Uint8Array): Promise<string> {
  served.set('/archive', packed);
  return fetch('/archive?signature=secret').then(
    () => 'none',
    (error: Error & { code?: string }) => {
      expect(error.code).toBe('validation_failed');
      expect(error.message).not.toContain('secret');
      return error.message;
    },
  );
}

describe('an archive that people make', () => {
  const long = `${'a-long-name/'.repeat(12)}${'x'.repeat(180)}`;
  let tree: string;
  beforeAll(async () => {
    tree = join(directory, 'hello');
    const files = { 'package.json': '{}', 'bin/run': '#!/bin/sh', [long]: 'long', ümlaut: 'ü', '.git/config': 'no part of it' };
    for (const [path, content] of Object.entries(files)) {
      await mkdir(dirname(join(tree, path)), { recursive: true });
      await writeFile(join(tree, path), content);
    }
    await chmod(join(tree, 'bin/run'), 0o4775);
    await symlink('run', join(tree, 'bin/link'));
    await mkdir(join(tree, 'empty'));
  });
  const expected = {
    'package.json': 'file {}',
    'bin/run': 'executable #!/bin/sh',
    'bin/link': 'symlink run',
    [long]: 'file long',
    ümlaut: 'file ü',
  };

  it.each([['--format=gnu'], ['--format=pax'], ['--format=oldgnu']])(
    'with tar %s is its files, whatever folder they are in',
    async (format) => {
      const packed = join(directory, 'packed.tar.gz');
      const pack = async (...what: string[]): Promise<Uint8Array> => {
        await runChecked('tar', [format, '-czf', packed, ...what]);
        return readFile(packed);
      };
      expect(await unpack(await pack('-C', directory, 'hello'))).toEqual(expected);
      expect(await unpack(await pack('-C', tree, '.'))).toEqual(expected);
    },
  );

  it('with git archive, as git hosts do, is its files too', async () => {
    const work = join(directory, 'work');
    await runChecked('git', ['init', '-q', '-b', 'main', work]);
    await writeFile(join(work, 'Procfile'), 'web: serve');
    await runChecked('git', ['-C', work, 'add', '.']);
    await runChecked('git', ['-C', work, '-c', 'user.name=Ada', '-c', 'user.email=a@example.com', 'commit', '-qm', 'first']);
    const packed = join(directory, 'git.tar.gz');
    await runChecked('git', ['-C', work, 'archive', '--prefix=hello-1.2/', '-o', packed, 'HEAD']);
    expect(await unpack(await readFile(packed))).toEqual({ Procfile: 'file web: serve' });
  });

  it('keeps folders apart when there are several, and a file of more than one piece whole', async () => {
    const large = 'x'.repeat(3 * mebibyte);
    const packed = gzipSync(
      tarOf({ path: 'a/one', content: '1' }, { path: 'b/two', content: large }, { path: './._a', content: 'mac' }),
    );
    expect(await unpack(packed)).toEqual({ 'a/one': 'file 1', 'b/two': `file ${large}`, '._a': 'file mac' });
  });

  it('leaves out what macOS puts beside the only folder', async () => {
    expect(await unpack(gzipSync(tarOf({ path: './._app', content: 'mac' }, { path: 'app/one', content: '1' })))).toEqual({
      one: 'file 1',
    });
  });

  it('is taken by the names and sizes that pax and GNU give, not by the cut ones', async () => {
    const packed = gzipSync(
      tarOf(
        paxEntry({ comment: 'of git archive' }, 'g'),
        paxEntry({ path: 'app/ä', size: '3', 'SCHILY.xattr.user.x': 'y' }),
        { path: Buffer.from([0x61, 0xc3]), content: 'one', size: 0 },
        { path: '././@LongLink', type: 'L', content: 'app/two\0' },
        { path: 'cut', content: 'two' },
        { path: '././@LongLink', type: 'K', content: 'two\0' },
        { path: 'app/link', type: '2', target: 'cut' },
        { path: 'app/old/', content: '', type: '\0' },
      ),
    );
    expect(await unpack(packed)).toEqual({ ä: 'file one', two: 'file two', link: 'symlink two' });
  });
});

describe('an archive is refused, and nothing of it unpacked,', () => {
  const file = { path: 'a', content: '1' };
  const sound = tarOf(file);
  it.each<[string, Uint8Array, string]>([
    ['with an absolute path', gzipSync(tarOf(file, { path: '/etc/passwd' })), 'absolute path: "/etc/passwd"'],
    ['with a path that climbs out', gzipSync(tarOf({ path: 'a/../../b' })), 'leads outside of it'],
    ['with a path that pax makes climb out', gzipSync(tarOf(paxEntry({ path: '../b' }), file)), 'leads outside of it'],
    ['with a NUL byte in a path', gzipSync(tarOf(paxEntry({ path: 'a\0b' }), file)), 'NUL byte'],
    ['with a hard link', gzipSync(tarOf(file, { path: 'b', type: '1', target: '/etc/passwd' })), 'hard link: "b"'],
    ['with a device', gzipSync(tarOf(file, { path: 'null', type: '3' })), 'neither file, directory nor symlink'],
    ['with a pipe', gzipSync(tarOf(file, { path: 'pipe', type: '6' })), 'neither file, directory nor symlink'],
    ['with a sparse file of GNU', gzipSync(tarOf({ path: 'a', type: 'S' })), 'sparse'],
    ['with a sparse file of pax', gzipSync(tarOf(paxEntry({ 'GNU.sparse.major': '1' }), file)), 'sparse'],
    ['with a name that is no text', gzipSync(tarOf({ path: Buffer.from([0x61, 0xff]) })), 'not UTF-8'],
    ['with a name that is too long', gzipSync(tarOf(paxEntry({ path: 'x'.repeat(256) }), file)), 'too long'],
    [
      'with a path that is too long',
      gzipSync(tarOf(paxEntry({ path: `${'x'.repeat(200)}/`.repeat(15) + 'x' }), file)),
      'too long',
    ],
    ['with a path that is too deep', gzipSync(tarOf(paxEntry({ path: `${'x/'.repeat(20)}x` }), file)), 'too long'],
    ['with one name for all', gzipSync(tarOf(paxEntry({ path: 'x' }, 'g'), file)), 'global path or size record'],
    ['with a pax size that is none', gzipSync(tarOf(paxEntry({ size: '-1' }), file)), 'impossible size'],
    [
      'with a pax record that lies',
      gzipSync(tarOf({ path: 'p', type: 'x', content: '99 path=b\n' }, file)),
      'malformed pax record',
    ],
    [
      'with pax records that take long to read',
      gzipSync(tarOf({ path: 'p', type: 'x', content: '5 a=\n'.repeat(100_000) }, file)),
      'more than 1000 pax records',
    ],
    ['with a pax header that never ends', gzipSync(tarOf({ path: 'p', type: 'x', size: 2 * mebibyte })), 'larger than 1 MiB'],
    [
      'with a directory that has bytes',
      gzipSync(tarOf({ path: 'd', type: '5', content: 'x' })),
      'content in an entry that cannot have any',
    ],
    ['with too many entries', gzipSync(tarOf(...Array.from({ length: 1001 }, (_, i) => ({ path: `${i}` })))), 'more than 1000'],
    ['without files', gzipSync(tarOf({ path: 'd/', type: '5' })), 'has no files'],
    ['that states more than it has', gzipSync(encodeEntry({ path: 'a', content: 'x', size: 5000 })), 'ends too early'],
    ['without an end', gzipSync(encodeEntry(file)), 'ends too early'],
    ['with another behind it', gzipSync(Buffer.concat([sound, sound])), 'has data after its end'],
    ['with a wrong header', gzipSync(Buffer.concat([encodeEntry(file).fill(0x41, 0, 50), Buffer.alloc(1024)])), 'damaged'],
    ['that is a gzip bomb', gzipSync(Buffer.concat([encodeEntry(file), Buffer.alloc(50 * mebibyte)])), 'larger than 4 MiB when'],
    ['that is a bomb of one file', gzipSync(tarOf({ path: 'a', content: Buffer.alloc(8 * mebibyte) })), 'larger than 4 MiB when'],
    ['that is too large', gzipSync(tarOf({ path: 'a', content: randomBytes(1.5 * mebibyte) })), 'larger than 1 MiB'],
    ['that was cut off', gzipSync(sound).subarray(0, -5), 'damaged'],
    ['that was changed', gzipSync(sound).fill(0xff, 20, 30), 'damaged'],
    ['with garbage behind it', Buffer.concat([gzipSync(sound), Buffer.from('garbage')]), 'has data after its end'],
    ['with a second gzip behind it', Buffer.concat([gzipSync(sound), gzipSync(sound)]), 'has data after its end'],
    ['that is empty', Buffer.alloc(0), 'is empty'],
    ['that is a zip', Buffer.from('PK\x03\x04and so on'), 'is a zip file. Only tar.gz is supported'],
    ['that is a web page', Buffer.from('<!doctype html>'), 'is a web page'],
    ['that is a bare tar', sound, 'not packed with gzip'],
    ['that is gzip of something else', gzipSync('x'.repeat(2000)), 'does not contain a tar'],
  ])('%s', async (_name, packed, expected) => {
    expect(await refusal(packed)).toContain(expected);
  });
});

describe('an archive is fetched', () => {
  const packed = gzipSync(tarOf({ path: 'a', content: '1' }));
  const sha256 = createHash('sha256').update(packed).digest('hex');

  it('when it has the checksum that was given, and else not', async () => {
    served.set('/archive', packed);
    const archive = await fetch('/archive', sha256);
    expect([archive.sha256, archive.bytes, archive.files]).toEqual([sha256, packed.length, 1]);
    await archive.discard();
    await expect(fetch('/archive', '0'.repeat(64))).rejects.toThrow(`its SHA-256 is ${sha256}, expected 0000`);
  });

  it('by way of a redirect, but never to where the address itself could not lead', async () => {
    served.set('/archive', packed);
    await (await fetch('/moved')).discard();
    await expect(fetch('/inside')).rejects.toThrow('The host metadata.test could not be resolved');
  });

  it('or it is said that it cannot be read, without what the address carries in its query', async () => {
    const error = await fetch('/none?signature=secret').catch((caught: Error) => caught.message);
    expect(error).toMatch(/answered 403 for \/none: .*signed URL has expired/);
    expect(error).not.toContain('secret');
  });

  it('in its time or not at all', async () => {
    await expect(fetch('/silent', undefined, 0.2)).rejects.toThrow('took more than 0.2 s');
  });
});

it('an address in a private network is not fetched from', async () => {
  const hosts = createOutsideSourceHosts({ allowPrivate: false, seconds: 5 });
  const signal = new AbortController().signal;
  await expect(hosts.fetchArchive({ url: 'https://127.0.0.1/a.tar.gz', sha256: undefined, signal })).rejects.toThrow(
    'private network',
  );
  await expect(hosts.fetchArchive({ url: base, sha256: undefined, signal })).rejects.toThrow('use https');
});
