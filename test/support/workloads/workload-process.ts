/** A control plane in a process of its own that does nothing but host the workload driver: made to be killed. */

import type { AppId } from '#shared/ids.ts';
import type { AppLogQuery } from '#shared/platform/app-logs.ts';
import type { RolloutPlan, WorkloadSpec } from '#shared/platform/workloads.ts';
import { createGatewayRouter } from '#shared/routing/gateway-router.ts';
import { openWorkloadFixture } from '#test/support/workloads/workload-fixture.ts';

export type WorkloadCall =
  | { op: 'rollOut'; spec: WorkloadSpec; plan: RolloutPlan }
  | { op: 'ensureWorkload'; spec: WorkloadSpec }
  | { op: 'restartWorkload' | 'readInstances'; appId: AppId }
  | { op: 'readLogs'; appId: AppId; query: AppLogQuery }
  | { op: 'detach' | 'stopAll' };

export type WorkloadAnswer =
  | { ready: true }
  | { fact: unknown }
  | { id: number; result: unknown }
  | { id: number; problem: string };

const [dataDir = '', controlSocket = ''] = process.argv.slice(2);
const ground = await openWorkloadFixture(dataDir, createGatewayRouter(controlSocket));
await ground.adopt();
const say = (answer: WorkloadAnswer): void => void process.send?.(answer);

async function perform(call: WorkloadCall): Promise<unknown> {
  switch (call.op) {
    case 'rollOut': {
      for await (const fact of ground.workloads.rollOut(call.spec, call.plan, new AbortController().signal)) say({ fact });
      return undefined;
    }
    case 'ensureWorkload':
      return ground.workloads.ensureWorkload(call.spec);
    case 'restartWorkload':
      return ground.workloads.restartWorkload(call.appId);
    case 'readInstances':
      return ground.workloads.readInstances(call.appId);
    case 'readLogs':
      return ground.logs.readLogs(call.appId, call.query);
    case 'detach':
      return ground.detach();
    case 'stopAll':
      return ground.stopAll();
  }
}

process.on('message', ({ id, call }: { id: number; call: WorkloadCall }) => {
  perform(call).then(
    (result) => say({ id, result }),
    (error: unknown) => say({ id, problem: String(error) }),
  );
});
say({ ready: true });
