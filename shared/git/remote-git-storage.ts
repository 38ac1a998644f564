import type { GitBrowser, GitReader, GitStorage, RefStore } from '#shared/git/git-storage.ts';
import { createRemotePort, type RemoteCaller } from '#shared/remote/remote-calls.ts';
import type { OfferedPort } from '#shared/remote/remote-server.ts';

const reader = { calls: ['resolveCommit', 'isAncestor', 'listSubmodules'] };
const browser = { calls: ['readCommit', 'readPath', 'compare'] };
const refs = { calls: ['listRefs', 'readRef', 'readRefs'] };
const none = { calls: [] };

/** The calls that a process with the repositories answers. */
export function offerGitStorage(git: Pick<GitStorage, 'reader' | 'browser' | 'refs'>): Record<string, OfferedPort> {
  return {
    gitReader: { methods: reader, driver: git.reader },
    gitBrowser: { methods: browser, driver: git.browser },
    gitRefs: { methods: refs, driver: git.refs },
  };
}

/** The repositories as a process without a disk has them: what people look at. Pushes and builds are for others. */
export function createRemoteGitStorage(caller: RemoteCaller): GitStorage {
  const storage = createRemotePort<GitStorage>(caller, 'git', none);
  return {
    refs: createRemotePort<RefStore>(caller, 'gitRefs', refs),
    reader: createRemotePort<GitReader>(caller, 'gitReader', reader),
    browser: createRemotePort<GitBrowser>(caller, 'gitBrowser', browser),
    server: createRemotePort<GitStorage['server']>(caller, 'gitServer', none),
    maintenance: createRemotePort<GitStorage['maintenance']>(caller, 'gitMaintenance', none),
    stagePack: storage.stagePack,
    takeSnapshot: storage.takeSnapshot,
    deleteRepository: storage.deleteRepository,
    sweep: storage.sweep,
    close: () => Promise.resolve(),
  };
}
