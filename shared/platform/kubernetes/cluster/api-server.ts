import type { Response } from 'undici';
import type { ApiRequests } from './api-requests.ts';
import type { Cluster, ClusterObject } from './cluster.ts';
import { apiGroup, kindOf } from './kinds.ts';
import { listObjects, readStatus } from './list-objects.ts';
import { collectionPath, groupPath, objectPath } from './object-path.ts';
import { readTimedLog, streamPodLog } from './pod-log-requests.ts';
import { type Attempt, refusal } from './refusals.ts';
import { watchObjects } from './watch-objects.ts';

/** Owns the fields that the platform sets; others may own other fields of the same object. */
export const fieldManager = 'paas';

/** The cluster behind an API server. */
export function createApiServer(requests: ApiRequests): Cluster {
  const referenceOf = ({ apiVersion, kind, metadata: { name, namespace } }: ClusterObject) => ({
    kind: kindOf({ apiVersion, kind }),
    name,
    ...(namespace === undefined ? {} : { namespace }),
  });

  const cluster: Cluster = {
    async apply(object) {
      const reference = referenceOf(object);
      const response = await requests.send({
        method: 'PATCH',
        path: `${objectPath(reference)}?fieldManager=${fieldManager}&force=true&fieldValidation=Strict`,
        body: object,
        contentType: 'application/apply-patch+yaml',
      });
      return readObject(response, { verb: 'patch', ...reference });
    },
    async create(object) {
      const reference = referenceOf(object);
      const { name: _, ...collection } = reference;
      const path = `${collectionPath(collection)}?fieldManager=${fieldManager}&fieldValidation=Strict`;
      // A second try could not tell whether the first has created the object.
      const response = await requests.send({ method: 'POST', path, body: object, retry: false });
      if (response.status === 409) {
        await response.body?.cancel();
        return 'existed';
      }
      await readObject(response, { verb: 'create', ...reference });
      return 'created';
    },
    async patch(reference, change, subresource) {
      const response = await requests.send({
        method: 'PATCH',
        path: `${objectPath(reference, subresource)}?fieldManager=${fieldManager}`,
        body: change,
        contentType: 'application/merge-patch+json',
      });
      return readExisting(response, { verb: 'patch', ...reference, subresource });
    },
    async read(reference) {
      const response = await requests.send({ method: 'GET', path: objectPath(reference) });
      return readExisting(response, { verb: 'get', ...reference });
    },
    list: (selection) => listObjects(requests, selection),
    async serves(kind) {
      const response = await requests.send({ method: 'GET', path: groupPath(kind) });
      if (response.status === 404) {
        await response.body?.cancel();
        return false;
      }
      if (!response.ok) throw refusal({ verb: 'get', kind }, response.status, await readStatus(response));
      const { resources } = (await response.json()) as { resources: readonly { name: string }[] };
      return resources.some(({ name }) => name === kind.plural);
    },
    async isAllowed({ verb, kind, name, namespace, subresource }) {
      const resourceAttributes = { verb, ...apiGroup(kind), resource: kind.plural, name, namespace, subresource };
      const response = await requests.send({
        method: 'POST',
        path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
        body: { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', spec: { resourceAttributes } },
      });
      const review = await readObject(response, { verb: 'create', kind });
      return (review.status as { allowed?: boolean } | undefined)?.allowed === true;
    },
    async delete(reference) {
      const found = await cluster.read(reference);
      const { uid, resourceVersion, deletionTimestamp } = found?.metadata ?? {};
      if (found === undefined || deletionTimestamp !== undefined) return false;
      const response = await requests.send({
        method: 'DELETE',
        path: objectPath(reference),
        // Of several that delete the same object, one finds it as it was read.
        body: { propagationPolicy: 'Background', preconditions: { uid, resourceVersion } },
      });
      if (response.status === 409) {
        await response.body?.cancel();
        return cluster.delete(reference);
      }
      return (await readExisting(response, { verb: 'delete', ...reference })) !== undefined;
    },
    watch: (selection, signal, listed) => watchObjects(requests, selection, { signal, listed }),
    async readPodLog({ namespace, name, container }, lines) {
      const attempt = { verb: 'get', kind: kindOf({ apiVersion: 'v1', kind: 'Pod' }), name, namespace, subresource: 'log' };
      const query = `container=${encodeURIComponent(container)}&tailLines=${lines}`;
      const response = await requests.send({ method: 'GET', path: `${objectPath(attempt, 'log')}?${query}` });
      if (response.ok) return await response.text();
      // 400: the container has not started yet, so there is nothing to read.
      if (response.status === 400 || response.status === 404) {
        await response.body?.cancel();
        return undefined;
      }
      throw refusal(attempt, response.status, await readStatus(response));
    },
    streamPodLog: (pod, follow, signal) => streamPodLog(requests, pod, follow, signal),
    readTimedLog: (pod, range) => readTimedLog(requests, pod, range),
  };
  return cluster;
}

async function readObject(response: Response, attempt: Attempt): Promise<ClusterObject> {
  if (!response.ok) throw refusal(attempt, response.status, await readStatus(response));
  return (await response.json()) as ClusterObject;
}

/** Undefined for an object that does not exist; a kind or a namespace that does not exist is an error. */
async function readExisting(response: Response, attempt: Attempt): Promise<ClusterObject | undefined> {
  if (response.status !== 404) return readObject(response, attempt);
  const status = await readStatus(response);
  if (status.reason === 'NotFound' && status.detailsKind !== 'namespaces' && status.named) return undefined;
  if (attempt.kind.plural === 'namespaces' && status.reason === 'NotFound') return undefined;
  throw refusal(attempt, 404, status);
}
