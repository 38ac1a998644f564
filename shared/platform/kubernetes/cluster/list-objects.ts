import type { Response } from 'undici';
import type { ApiRequests } from './api-requests.ts';
import type { ClusterObject, Selection } from './cluster.ts';
import { collectionPath, labelSelector } from './object-path.ts';
import { refusal, type StatusBody } from './refusals.ts';

const pageSize = 500;

/** All objects of a selection, page by page, and the version of the collection that they are of. */
export async function listObjects(
  requests: ApiRequests,
  selection: Selection,
): Promise<{ items: ClusterObject[]; resourceVersion: string }> {
  const { kind, namespace, labels } = selection;
  const items: ClusterObject[] = [];
  let next: string | undefined;
  for (;;) {
    const query = new URLSearchParams({ limit: String(pageSize) });
    if (labels !== undefined) query.set('labelSelector', labelSelector(labels));
    if (next !== undefined) query.set('continue', next);
    const response = await requests.send({ method: 'GET', path: `${collectionPath(selection)}?${query.toString()}` });
    if (!response.ok) throw refusal({ verb: 'list', kind, namespace }, response.status, await readStatus(response));
    const page = (await response.json()) as {
      metadata: { continue?: string; resourceVersion: string };
      items: Omit<ClusterObject, 'apiVersion' | 'kind'>[];
    };
    // The items of a list do not repeat what they are.
    items.push(...page.items.map((item) => ({ ...item, apiVersion: kind.apiVersion, kind: kind.kind })));
    next = page.metadata.continue;
    if (next === undefined || next === '') return { items, resourceVersion: page.metadata.resourceVersion };
  }
}

/** What the API server says instead of an object. `named`: it means one object, not a kind or a path. */
export async function readStatus(response: Response): Promise<StatusBody & { named: boolean }> {
  const text = await response.text();
  try {
    const { message, reason, details } = JSON.parse(text) as {
      message?: string;
      reason?: string;
      details?: { kind?: string; name?: string };
    };
    return { message, reason, detailsKind: details?.kind, named: details?.name !== undefined };
  } catch {
    return { message: text.trim().slice(0, 500), named: false };
  }
}
