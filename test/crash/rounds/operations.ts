import { pushDetached } from './detached-pushes.ts';
import type { PrepareOperation } from './operation.ts';
import { changePreview } from './preview-pushes.ts';
import { pushAtomically, pushCommit, pushConcurrently, pushTags } from './push-operations.ts';
import { changeAddon, changeConfig, deliverWebhook, startBuild } from './service-operations.ts';
import type { OperationKind } from './test-environment.ts';

export const operations: Readonly<Record<OperationKind, PrepareOperation>> = {
  push: pushCommit,
  race: pushConcurrently,
  detach: pushDetached,
  preview: changePreview,
  refs: pushTags,
  atomic: pushAtomically,
  build: startBuild,
  rollout: changeConfig,
  'add-on': changeAddon,
  webhook: deliverWebhook,
};
