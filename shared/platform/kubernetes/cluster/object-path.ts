import type { ObjectReference, Selection } from './cluster.ts';
import type { Kind } from './kinds.ts';

/** Of all objects of a kind, in one namespace or in all. */
export function collectionPath({ kind, namespace }: Pick<Selection, 'kind' | 'namespace'>): string {
  const inside = namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
  return `${groupPath(kind)}${inside}/${kind.plural}`;
}

/** Of one object, or of a subresource of it. */
export function objectPath({ kind, name, namespace }: ObjectReference, subresource?: string): string {
  if (kind.namespaced !== (namespace !== undefined))
    throw new Error(`${kind.kind} ${name}: ${kind.namespaced ? 'it needs a namespace' : 'it has no namespace'}.`);
  const path = `${collectionPath({ kind, ...(namespace === undefined ? {} : { namespace }) })}/${encodeURIComponent(name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

/** Of all kinds of a version; it answers what they are. */
export function groupPath({ apiVersion }: Kind): string {
  return apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
}

/** A `labelSelector` that all labels must match. */
export function labelSelector(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(',');
}
