/** A control plane in a process of its own that does nothing but host the workload driver: made to be killed. */

import type { AppId } from '#shared/ids.ts';
import type { AppLogQuery } from '#shared/platform/app-logs.ts';
import { rollOut } from '#shared/platform/testing/roll-out.ts';
import type { WorkloadSpec } from '#shared/platform/workloads.ts';
import { createGatewayRouter } from '#shared/routing/gateway-router.ts';
import { createDecider } from '#test/support/workloads/rollout-decider.ts';
import { openWorkloadFixture } from '#test/support/workloads/workload-fixture.ts';

export type WorkloadCall =
  | { op: 'rollOut'; spec: WorkloadSpec; stepSeconds: number }
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
const fixture = await openWorkloadFixture(dataDir, createGatewayRouter(controlSocket));
await fixture.adopt();
const send = (answer: WorkloadAnswer): void => void process.send?.(answer);

async function perform(call: WorkloadCall): Promise<unknown> {
  switch (call.op) {
    case 'rollOut': {
      const decide = createDecider(call.stepSeconds);
      for await (const fact of rollOut(fixture.rollouts, call.spec, { decide })) send({ fact });
      return undefined;
    }
    case 'ensureWorkload':
      return fixture.workloads.ensureWorkload(call.spec);
    case 'restartWorkload':
      return fixture.workloads.restartWorkload(call.appId);
    case 'readInstances':
      return fixture.workloads.readInstances(call.appId);
    case 'readLogs':
      return fixture.logs.readLogs(call.appId, call.query);
    case 'detach':
      return fixture.detach();
    case 'stopAll':
      return fixture.stopAll();
  }
}

process.on('message', ({ id, call }: { id: number; call: WorkloadCall }) => {
  perform(call).then(
    (result) => send({ id, result }),
    (error: unknown) => send({ id, problem: String(error) }),
  );
});
send({ ready: true });
