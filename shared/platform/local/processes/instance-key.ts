/** What distinguishes the instances of an app, apart from how often one was replaced. */
export interface InstanceIdentity {
  /** Process type, as 'web'. */
  type: string;
  /** From 1. */
  index: number;
  releaseVersion: number;
}

/** As users see it: 'web.1'. */
export function instanceName({ type, index }: Pick<InstanceIdentity, 'type' | 'index'>): string {
  return `${type}.${index}`;
}

/** `<type>.<index>.v<version>.<random>`: unique among all instances that ever were. */
export function newInstanceKey(type: string, index: number, releaseVersion: number): string {
  const random = crypto.getRandomValues(new Uint8Array(6)).toHex();
  return `${type}.${index}.v${releaseVersion}.${random}`;
}

const keyPattern = /^([A-Za-z0-9_-]+)\.(\d+)\.v(\d+)\.[0-9a-f]{12}$/;

/** Undefined for anything that is not a key. */
export function parseInstanceKey(key: string): InstanceIdentity | undefined {
  const [, type, index, version] = keyPattern.exec(key) ?? [];
  if (type === undefined) return undefined;
  return { type, index: Number(index), releaseVersion: Number(version) };
}
