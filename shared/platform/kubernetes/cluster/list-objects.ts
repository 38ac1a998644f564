import type { Response } from 'undici';
import type { ApiRequests } from './api-requests.ts';
import type { ClusterObject, Selection } from './cluster.ts';
import { collectionPath, labelSelector } from './object-path.ts';
import { refusal, type StatusBody } from './refusals.ts';

const pageSize = 500;

/** One page of a list, and the version of the collection that all its pages are of. */
export interface ObjectPage {
  items: ClusterObject[];
  resourceVersion: string;
}

/**
 * All objects of a selection, page by page.
 * @throws ExpiredList when the API server does not have the rest of the list any more
 */
export async function* listPages(requests: ApiRequests, selection: Selection): AsyncGenerator<ObjectPage> {
  const { kind, namespace, labels } = selection;
  let next: string | undefined;
  do {
    const query = new URLSearchParams({ limit: String(pageSize) });
    if (labels !== undefined) query.set('labelSelector', labelSelector(labels));
    if (next !== undefined) query.set('continue', next);
    const response = await requests.send({ method: 'GET', path: `${collectionPath(selection)}?${query.toString()}` });
    if (!response.ok) {
      const status = await readStatus(response);
      if (response.status === 410 && next !== undefined) throw new ExpiredList();
      throw refusal({ verb: 'list', kind, namespace }, response.status, status);
    }
    const page = (await response.json()) as {
      metadata: { continue?: string; resourceVersion: string };
      items: Omit<ClusterObject, 'apiVersion' | 'kind'>[];
    };
    next = page.metadata.continue;
    yield {
      // The items of a list do not repeat what they are.
      items: page.items.map((item) => ({ ...item, apiVersion: kind.apiVersion, kind: kind.kind })),
      resourceVersion: page.metadata.resourceVersion,
    };
  } while (next !== undefined && next !== '');
}

/** The list took longer than the API server keeps versions of objects: it must be started again. */
class ExpiredList extends Error {}

/** All objects of a selection. A list that expires is started again, twice at most. */
export async function listObjects(requests: ApiRequests, selection: Selection): Promise<ClusterObject[]> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return (await Array.fromAsync(listPages(requests, selection))).flatMap(({ items }) => items);
    } catch (error) {
      if (!(error instanceof ExpiredList) || attempt === 3) throw error;
    }
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
