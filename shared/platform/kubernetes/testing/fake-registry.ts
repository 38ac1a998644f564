import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { fetch } from 'undici';
import { listenOnLoopback } from '#test/support/servers/listen-on-loopback.ts';

/** A registry in memory behind HTTP: the requests that the driver and a push make, as the distribution specification has them. */
export interface FakeRegistry {
  readonly host: string;
  stop(): Promise<void>;
}

/** @param password when given, every request needs the user 'paas' with it */
export async function startFakeRegistry(password?: string): Promise<FakeRegistry> {
  const blobs = new Map<string, Buffer>();
  const manifests = new Map<string, { type: string; body: Buffer }>();
  const tags = new Map<string, Map<string, string>>();
  const tagsOf = (name: string): Map<string, string> => {
    const known = tags.get(name) ?? new Map<string, string>();
    tags.set(name, known);
    return known;
  };

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const end = (status: number, body?: Buffer | string, headers: Record<string, string> = {}): void => {
      response.writeHead(status, headers);
      response.end(request.method === 'HEAD' ? undefined : body);
    };
    const wanted = password && `Basic ${Buffer.from(`paas:${password}`).toString('base64')}`;
    if (wanted !== undefined && request.headers.authorization !== wanted)
      return end(401, '{}', { 'www-authenticate': 'Basic realm="registry"' });
    const url = new URL(request.url ?? '/', 'http://registry');
    const [, name = '', kind = '', reference = ''] = /^\/v2\/(.+)\/(manifests|blobs|tags)\/(.*)$/.exec(url.pathname) ?? [];
    const body = Buffer.concat(await request.toArray());
    if (kind === 'tags') {
      const all = [...(tags.get(name)?.keys() ?? [])].toSorted();
      if (!tags.has(name)) return end(404, '{}');
      const from = all.findIndex((tag) => tag > (url.searchParams.get('last') ?? ''));
      const page = from === -1 ? [] : all.slice(from, from + 2);
      const isLast = page.length === 0 || page.at(-1) === all.at(-1);
      const link = `</v2/${name}/tags/list?n=2&last=${page.at(-1)}>; rel="next"`;
      return end(200, JSON.stringify({ name, tags: page.length === 0 ? null : page }), isLast ? {} : { link });
    }
    if (kind === 'blobs' && reference.startsWith('uploads/')) {
      if (request.method === 'POST') return end(202, '', { location: `/v2/${name}/blobs/uploads/1` });
      blobs.set(url.searchParams.get('digest') ?? '', body);
      return end(201);
    }
    if (kind === 'blobs') {
      const blob = blobs.get(reference);
      return blob === undefined ? end(404, '{}') : end(200, blob);
    }
    const digest = reference.startsWith('sha256:') ? reference : (tags.get(name)?.get(reference) ?? '');
    const key = `${name}@${digest}`;
    if (request.method === 'PUT') {
      const made = digestOf(body);
      manifests.set(`${name}@${made}`, { type: request.headers['content-type'] ?? '', body });
      tagsOf(name).set(reference, made);
      return end(201, '', { 'docker-content-digest': made });
    }
    const manifest = manifests.get(key);
    if (manifest === undefined) return end(404, '{}');
    if (request.method === 'DELETE') {
      manifests.delete(key);
      for (const [tag, to] of [...tagsOf(name)]) if (to === digest) tagsOf(name).delete(tag);
      return end(202);
    }
    return end(200, manifest.body, { 'content-type': manifest.type, 'docker-content-digest': digest });
  }

  const server = createServer((request, response) => void answer(request, response));
  const listening = await listenOnLoopback(server);
  return {
    host: listening.host,
    stop: () => listening.close(),
  };
}

/** An image as a builder pushes it. */
export interface PushedImage {
  /** With the registry's host. */
  repository: string;
  tag: string;
  /** The image's configuration. */
  config: object;
  /** The only layer. */
  layer: string;
}

/** Pushes an image by the HTTP API. @returns its digest, `sha256:…` */
export async function pushImage({ repository, tag, config, layer }: PushedImage, authorization?: string): Promise<string> {
  const host = repository.split('/')[0] ?? '';
  const name = repository.slice(host.length + 1);
  const base = `http://${host}/v2/${name}`;
  const headers = authorization === undefined ? {} : { authorization };
  const put = async (path: string, body: Buffer, type: string): Promise<void> => {
    const response = await fetch(new URL(path, base), { method: 'PUT', body, headers: { ...headers, 'content-type': type } });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  };
  const pushBlob = async (content: Buffer, mediaType: string): Promise<object> => {
    const digest = digestOf(content);
    const started = await fetch(`${base}/blobs/uploads/`, { method: 'POST', headers });
    const location = new URL(started.headers.get('location') ?? '', base);
    location.searchParams.set('digest', digest);
    await put(location.href, content, 'application/octet-stream');
    return { mediaType, digest, size: content.length };
  };
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      config: await pushBlob(Buffer.from(JSON.stringify(config)), 'application/vnd.oci.image.config.v1+json'),
      layers: [await pushBlob(Buffer.from(layer), 'application/vnd.oci.image.layer.v1.tar')],
    }),
  );
  await put(`/v2/${name}/manifests/${tag}`, manifest, 'application/vnd.oci.image.manifest.v1+json');
  return digestOf(manifest);
}

function digestOf(content: Buffer): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
}
