import { describe, expect, it } from 'vitest';
import { kinds } from './kinds.ts';
import { describeRefusal } from './refusals.ts';

const create = { verb: 'create', kind: kinds.deployment, name: 'app-1', namespace: 'tenant-a' };

describe('the sentence on a refusal', () => {
  it('names what has to be installed for a kind that the cluster does not know', () => {
    const attempt = { verb: 'create', kind: kinds.rollout, name: 'app-1', namespace: 'tenant-a' };
    expect(describeRefusal(attempt, 404, { message: '404 page not found' })).toBe(
      'The cluster does not know the kind Rollout (argoproj.io/v1alpha1). Install Argo Rollouts.',
    );
  });

  it('names the verb, the resource and the place of a right that is missing', () => {
    const message =
      'deployments.apps is forbidden: User "system:serviceaccount:paas:paas" cannot create resource "deployments" in API group "apps" in the namespace "tenant-a"';
    expect(describeRefusal(create, 403, { reason: 'Forbidden', message })).toBe(
      'The platform lacks the right to create the Deployment app-1 in the namespace tenant-a. Give its service account the verb `create` on `deployments` (apps) in the namespace tenant-a.',
    );
  });

  it('names the quota that is exceeded, what is used and what is asked for', () => {
    const message = 'pods "app-1-x" is forbidden: exceeded quota: tenant, requested: pods=1, used: pods=100, limited: pods=100';
    expect(describeRefusal({ ...create, kind: kinds.pod }, 403, { reason: 'Forbidden', message })).toContain(
      'the quota tenant allows pods=100, pods=100 is used, and this needs pods=1',
    );
  });

  it.each([
    [
      `admission webhook "policy.example.com" denied the request: images must be signed`,
      'the admission webhook policy.example.com says: images must be signed',
    ],
    [
      `deployments.apps "app-1" is forbidden: ValidatingAdmissionPolicy 'paas-fence' with binding 'paas-fence' denied request: not a tenant's namespace`,
      "the admission policy paas-fence says: not a tenant's namespace",
    ],
    [
      `pods "x" is forbidden: violates PodSecurity "restricted:v1.36": runAsNonRoot != true (pod must set it)`,
      'it violates the pod security level restricted:v1.36 of its namespace (runAsNonRoot != true (pod must set it))',
    ],
  ])('repeats what an admission says: %s', (message, expected) => {
    expect(describeRefusal(create, 403, { reason: 'Forbidden', message })).toBe(
      `Kubernetes refused to create the Deployment app-1 in the namespace tenant-a: ${expected}.`,
    );
  });

  it('names the namespace that does not exist', () => {
    const status = { reason: 'NotFound', message: 'namespaces "tenant-a" not found', detailsKind: 'namespaces' };
    expect(describeRefusal(create, 404, status)).toContain('the namespace tenant-a does not exist');
  });
});
