import { describeWorkloads } from '#shared/platform/contract/workloads.ts';
import { createMemoryRouter } from '#shared/platform/memory/router.ts';
import { makeDataDir, makeImage, openWorkloadGround, removeDataDir, serverScript } from '#test/support/workload-ground.ts';

describeWorkloads('local', async () => {
  const dataDir = await makeDataDir();
  const router = createMemoryRouter();
  const ground = await openWorkloadGround(dataDir, router);
  await ground.adopt();
  return {
    workloads: ground.workloads,
    logs: ground.logs,
    router,
    image: await makeImage(dataDir, 'contract', { 'server.js': serverScript() }),
    commands: { serve: '/opt/node server.js', work: 'sleep 1000', fail: 'echo no database; exit 4' },
    runs: { exits9: 'echo out; exit 9', hangs: 'trap "" TERM; echo out; sleep 1000 & wait; wait' },
    async crash(appId, name) {
      const instances = (await router.readRoute(appId))?.backends[0]?.instances ?? [];
      const port = instances.find(({ key }) => key.startsWith(`${name}.`))?.port;
      await fetch(`http://127.0.0.1:${port}/crash`).catch(() => undefined);
    },
    async stop() {
      await ground.stopAll();
      await removeDataDir(dataDir);
    },
  };
});
