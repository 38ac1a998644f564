import { describe, expect, it } from 'vitest';
import type { ClusterObject, ManagedFields } from '../cluster/cluster.ts';
import { takeOver } from './apply-alone.ts';

const own: ManagedFields = { manager: 'paas', operation: 'Apply', fieldsV1: { 'f:spec': { 'f:replicas': {} } } };
const deployment = (...others: ManagedFields[]): ClusterObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'app', namespace: 'tenant', managedFields: [own, ...others] },
});

describe('fields that others have added', () => {
  it('become the platform’s, so that the next apply removes them', () => {
    const kubectl = {
      manager: 'kubectl-edit',
      operation: 'Update',
      fieldsV1: { 'f:spec': { 'f:paused': {} }, 'f:metadata': {} },
    };
    expect(takeOver(deployment(kubectl))).toEqual([{ ...own, fieldsV1: { 'f:spec': { 'f:replicas': {}, 'f:paused': {} } } }]);
  });

  it('stay where controllers write them by design', () => {
    const status = { manager: 'kubectl', operation: 'Update', subresource: 'status', fieldsV1: { 'f:spec': {} } };
    const controller = { manager: 'rollouts-controller', operation: 'Update', fieldsV1: { 'f:spec': { 'f:replicas': {} } } };
    const annotation = { manager: 'kubectl-annotate', operation: 'Update', fieldsV1: { 'f:metadata': { 'f:annotations': {} } } };
    expect(takeOver(deployment(status, controller, annotation))).toBeUndefined();
    expect(
      takeOver({ ...deployment({ manager: 'x', operation: 'Update', fieldsV1: { 'f:spec': {} } }), kind: 'Service' }),
    ).toBeUndefined();
  });
});
