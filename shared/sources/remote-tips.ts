import type { ObjectId } from '#shared/ids.ts';
import type { RemoteTips } from '#shared/sources/source-hosts.ts';

/** What a ref that is a branch begins with. */
export const branchPrefix = 'refs/heads/';

/** A ref as a git host lists it. */
export interface ListedRef {
  /** 'HEAD', 'refs/heads/main' */
  name: string;
  oid: string;
  /** The ref that it names, for a symbolic ref. */
  target?: string | undefined;
}

/** Whether the text is the SHA-1 id of an object. */
export function isObjectId(text: string): text is ObjectId {
  return /^[0-9a-f]{40}$/.test(text);
}

/** The branches among listed refs, and the one that HEAD names. */
export function tipsOf(refs: Iterable<ListedRef>): RemoteTips {
  const branches = new Map<string, ObjectId>();
  let defaultBranch: string | undefined;
  for (const { name, oid, target } of refs) {
    if (name === 'HEAD' && target?.startsWith(branchPrefix) === true) defaultBranch = target.slice(branchPrefix.length);
    if (name.startsWith(branchPrefix) && isObjectId(oid)) branches.set(name.slice(branchPrefix.length), oid);
  }
  return { branches, defaultBranch };
}
