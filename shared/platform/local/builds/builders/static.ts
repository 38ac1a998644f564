import { partTargets } from '../../toolchains/toolchain-mounts.ts';
import type { Builder } from './builder.ts';

export const staticBuilder: Builder = {
  name: 'static',
  looksFor: 'index.html (static files)',
  async detect(source) {
    // A Procfile says that the app brings a server of its own.
    if (await source.hasFile('Procfile')) return undefined;
    return (await source.hasFile('index.html')) ? { what: 'Static site', why: 'index.html' } : undefined;
  },
  async plan() {
    return {
      notes: ['Nothing to build'],
      steps: [],
      env: {},
      path: [],
      toolchain: [
        { kind: 'platform', name: 'node' },
        { kind: 'platform', name: 'static-server' },
      ],
      cacheDirectories: [],
      runtimeEnv: {},
      defaultProcesses: async () => ({ web: `${partTargets.node} ${partTargets['static-server']} /app` }),
      processHint: '',
    };
  },
};
