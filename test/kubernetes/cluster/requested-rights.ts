import type { SeenRequest } from './start-api-proxy.ts';

/** A right as roles of Kubernetes give it, in a namespace or in the whole cluster: `'' patch argoproj.io/rollouts/status`. */
export type Right = string;

/** @param namespace '' for the whole cluster */
export const rightOf = (namespace: string, verb: string, group: string, resource: string): Right =>
  `${namespace} ${verb} ${group}/${resource}`;

/** The rights that requests needed; an apply needs two. Questions for what the API server serves need none. */
export function requestedRights(requests: readonly SeenRequest[]): Set<Right> {
  return new Set(requests.flatMap(rightsOfRequest));
}

function rightsOfRequest({ method, path, isWatch }: SeenRequest): Right[] {
  const { pathname, searchParams } = new URL(path, 'http://api');
  const parts = pathname.split('/').filter((part) => part !== '');
  const [group, rest] = parts[0] === 'api' ? ['', parts.slice(2)] : [parts[1] ?? '', parts.slice(3)];
  const isInside = rest[0] === 'namespaces' && rest.length > 2;
  const namespace = isInside ? (rest[1] ?? '') : '';
  const [resource, name, subresource] = isInside ? rest.slice(2) : rest;
  if (resource === undefined) return [];
  const full = subresource === undefined ? resource : `${resource}/${subresource}`;
  const verbs: Readonly<Record<string, readonly string[]>> = {
    GET: [isWatch ? 'watch' : name === undefined ? 'list' : 'get'],
    POST: ['create'],
    PATCH: searchParams.get('force') === 'true' ? ['create', 'patch'] : ['patch'],
    DELETE: ['delete'],
  };
  return (verbs[method] ?? []).map((verb) => rightOf(namespace, verb, group, full));
}
