import { fetch, type RequestInit, type Response } from 'undici';
import { AppError } from '#shared/errors.ts';
import type { Credentials } from './registry-credentials.ts';

/** A registry by the HTTP API of the OCI distribution specification. */
export interface Registry {
  /** Names of the tags of a repository; empty for one that does not exist. */
  listTags(repository: string): Promise<readonly string[]>;
  /** The digest that a tag or a digest leads to; undefined when there is none. */
  readDigest(repository: string, reference: string): Promise<string | undefined>;
  /** The manifest as JSON; undefined when there is none. */
  readManifest(repository: string, reference: string): Promise<unknown>;
  /** A blob that is JSON, as the configuration of an image. */
  readBlob(repository: string, digest: string): Promise<unknown>;
  /** Deletes a manifest with all its tags. False when there was none. */
  deleteManifest(repository: string, digest: string): Promise<boolean>;
}

/** Where the registry is, and who the platform is there. */
export interface RegistryOptions {
  /** With port: 'registry.example.com'. */
  host: string;
  insecure: boolean;
  /** Read each time that the registry asks for them: they may be replaced. */
  readCredentials(): Promise<Credentials | undefined>;
}

const manifestTypes = [
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
].join(', ');

const timeoutMilliseconds = 30_000;
const tagsOfPage = 1000;

export function createRegistry({ host, insecure, readCredentials }: RegistryOptions): Registry {
  const origin = `${insecure ? 'http' : 'https'}://${host}`;
  /** By what it is for; a registry answers 401 to one that has expired. */
  const authorizations = new Map<string, string>();

  async function send(path: string, scope: string, init: RequestInit = {}): Promise<Response> {
    const attempt = (): Promise<Response> => {
      const authorization = authorizations.get(scope);
      const headers = { accept: manifestTypes, ...(authorization === undefined ? {} : { authorization }) };
      return ask(path.startsWith('/') ? `${origin}${path}` : path, { ...init, headers });
    };
    const first = await attempt();
    if (first.status !== 401) return first;
    await first.body?.cancel();
    authorizations.set(scope, await authorize(first.headers.get('www-authenticate') ?? '', scope));
    return attempt();
  }

  async function authorize(challenge: string, scope: string): Promise<string> {
    const credentials = await readCredentials();
    const basic = credentials && `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}`;
    if (!/^bearer /i.test(challenge)) {
      if (basic === undefined) throw refused('It asks for a user and a password, and the platform has none for it');
      return basic;
    }
    const fields = new Map([...challenge.matchAll(/([a-z]+)="([^"]*)"/gi)].map(([, name = '', value = '']) => [name, value]));
    const url = new URL(fields.get('realm') ?? '');
    url.searchParams.set('service', fields.get('service') ?? '');
    url.searchParams.set('scope', scope);
    const response = await ask(url.href, { headers: basic === undefined ? {} : { authorization: basic } });
    if (!response.ok) throw refused(`Its token service answered with status ${response.status}`);
    const { token, access_token } = (await response.json()) as { token?: string; access_token?: string };
    return `Bearer ${token ?? access_token ?? ''}`;
  }

  async function ask(url: string, init: RequestInit): Promise<Response> {
    try {
      return await fetch(url, { ...init, signal: AbortSignal.timeout(timeoutMilliseconds) });
    } catch (error) {
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
      throw new AppError(
        'internal',
        `The registry at ${host} does not answer (${cause instanceof Error ? cause.message : ''}).`,
        {
          cause: error,
        },
      );
    }
  }

  async function found(response: Response): Promise<Response | undefined> {
    if (response.ok) return response;
    const text = await response.text();
    if (response.status === 404) return undefined;
    if (response.status === 401 || response.status === 403)
      throw refused('It does not accept the credentials of the platform for this');
    if (response.status === 405)
      throw refused('It does not allow images to be deleted; set REGISTRY_STORAGE_DELETE_ENABLED=true there');
    throw refused(`It answered with status ${response.status}`, text.slice(0, 500));
  }

  const refused = (why: string, cause?: string): AppError =>
    new AppError('internal', `The registry at ${host} refused a request of the platform. ${why}.`, { cause });
  const manifestPath = (repository: string, reference: string): string => `/v2/${nameIn(repository)}/manifests/${reference}`;
  const nameIn = (repository: string): string => repository.slice(host.length + 1);
  const pull = (repository: string): string => `repository:${nameIn(repository)}:pull`;

  return {
    async listTags(repository) {
      const tags: string[] = [];
      for (let path: string | undefined = `/v2/${nameIn(repository)}/tags/list?n=${tagsOfPage}`; path !== undefined; ) {
        const response: Response | undefined = await found(await send(path, pull(repository)));
        if (response === undefined) return [];
        // A repository whose tags were all deleted has null.
        tags.push(...(((await response.json()) as { tags: string[] | null }).tags ?? []));
        const next: string | undefined = /<([^>]+)>;\s*rel="?next/.exec(response.headers.get('link') ?? '')?.[1];
        path = next === undefined ? undefined : new URL(next, `${origin}${path}`).href.slice(origin.length);
      }
      return tags;
    },
    async readDigest(repository, reference) {
      const response = await found(await send(manifestPath(repository, reference), pull(repository), { method: 'HEAD' }));
      return response?.headers.get('docker-content-digest') ?? (response === undefined ? undefined : reference);
    },
    async readManifest(repository, reference) {
      return (await found(await send(manifestPath(repository, reference), pull(repository))))?.json();
    },
    async readBlob(repository, digest) {
      return (await found(await send(`/v2/${nameIn(repository)}/blobs/${digest}`, pull(repository))))?.json();
    },
    async deleteManifest(repository, digest) {
      const scope = `repository:${nameIn(repository)}:delete`;
      const response = await found(await send(manifestPath(repository, digest), scope, { method: 'DELETE' }));
      await response?.body?.cancel();
      return response !== undefined;
    },
  };
}
