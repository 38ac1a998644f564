import { describeRouter } from '#shared/routing/contract/router.ts';
import { createFakeRouter } from './fake-router.ts';

describeRouter('fake', async () => {
  const router = createFakeRouter();
  return {
    router,
    startInstance: async () => ({ host: '127.0.0.1', port: 9 }),
    visit: async (host, status = 200, bucket) => router.beginRequest(host, bucket)?.end({ status }),
    hold: async (host) => {
      const request = router.beginRequest(host);
      return { end: async () => request?.end() };
    },
    stop: async () => undefined,
  };
});
