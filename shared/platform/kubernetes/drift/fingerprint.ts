import { createHash } from 'node:crypto';
import type { ClusterObject } from '../cluster/cluster.ts';
import { releaseHashLabel } from '../names.ts';

/** Annotations that the platform sets; all others belong to controllers and to people. */
const ownAnnotations = /^(paas\/|cnpg\.io\/hibernation$)/;

/**
 * Short text that changes when somebody changes what the platform has decided about an object: its labels, its specification, its data.
 * What controllers change by design is left out: status, the weights of a route, the release that a Service leads to.
 */
export function fingerprint(object: ClusterObject): string {
  const { metadata, data, type, roleRef, subjects } = object;
  const annotations = Object.entries(metadata.annotations ?? {}).filter(([name]) => ownAnnotations.test(name));
  const facts = [metadata.labels, annotations, withoutControllers(object), data, type, roleRef, subjects];
  return createHash('sha256').update(JSON.stringify(facts)).digest('base64').slice(0, 16);
}

function withoutControllers({ kind, spec }: ClusterObject): unknown {
  switch (kind) {
    case 'Service': {
      const { selector = {}, ...others } = spec as { selector?: Record<string, string> };
      const { [releaseHashLabel]: _, ...own } = selector;
      return [own, others];
    }
    case 'HTTPRoute': {
      const { rules = [], ...others } = spec as { rules?: readonly { backendRefs?: readonly object[] }[] };
      const own = rules.map(({ backendRefs = [], ...rule }) => [
        rule,
        backendRefs.map((backend) => ({ ...backend, weight: undefined })),
      ]);
      return [own, others];
    }
    default:
      return spec;
  }
}
