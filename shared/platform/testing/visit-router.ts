import type { WorkloadsUnderTest } from '#shared/platform/testing/workloads-under-test.ts';
import type { FakeRouter } from '#shared/routing/fake-router.ts';

/** Visitors of a platform whose routes go to a fake router. */
export function visitRouter(router: FakeRouter): Pick<WorkloadsUnderTest, 'visit' | 'readWeights'> {
  return {
    visit(host) {
      const request = router.beginRequest(host);
      return request === undefined
        ? undefined
        : {
            releaseVersion: request.releaseVersion,
            instance: request.instance.key,
            end: (status = 200) => request.end({ status }),
          };
    },
    async readWeights(appId) {
      const backends = (await router.readRoute(appId))?.backends ?? [];
      return Object.fromEntries(
        backends.filter(({ weight }) => weight > 0).map(({ releaseVersion, weight }) => [releaseVersion, weight]),
      );
    },
  };
}
