/** Which route follows from what runs. */
import type { AppId } from '#shared/ids.ts';
import type { AppRoute } from '#shared/routing/app-route.ts';
import { addressOf, type InstanceRecord } from './instance-store.ts';

/** What a route follows from. */
export interface RouteFacts {
  appId: AppId;
  appName: string;
  hosts: readonly string[];
  /** True when left out. */
  sessionAffinity?: boolean | undefined;
  /** Percent by release version: adds up to 100, or is empty. One of 0 is only asked for what others do not have. */
  weights: ReadonlyMap<number, number>;
  instances: readonly Pick<InstanceRecord, 'key' | 'type' | 'state' | 'port' | 'address' | 'releaseVersion'>[];
}

/** A route to the web instances that are up. */
export function planRoute({ appId, appName, hosts, sessionAffinity = true, weights, instances }: RouteFacts): AppRoute {
  const backends = [...weights]
    .map(([releaseVersion, weight]) => ({
      releaseVersion,
      weight,
      instances: instances
        .filter((instance) => instance.type === 'web' && instance.state === 'up' && instance.releaseVersion === releaseVersion)
        .map((instance) => ({ key: instance.key, host: addressOf(instance), port: instance.port })),
    }))
    .filter((backend) => backend.weight > 0 || backend.instances.length > 0);
  return { appId, appName, hosts, ...(sessionAffinity ? {} : { sessionAffinity }), backends };
}
