/** What a walk over the history needs to know of a commit. */
export interface CommitLinks {
  /** Raw ids. */
  tree: Buffer;
  parents: Buffer[];
  /** Seconds since the epoch, by the committer's clock. */
  time: number;
}

const parentLine = 48;

/** @param data of a commit that passed `checkCommit` */
export function parseCommit(data: Buffer): CommitLinks {
  const tree = Buffer.from(data.toString('latin1', 5, 45), 'hex');
  const parents: Buffer[] = [];
  let at = 46;
  // The "p" of "parent": only parents and the author come after the tree.
  for (; data[at] === 0x70; at += parentLine) parents.push(Buffer.from(data.toString('latin1', at + 7, at + 47), 'hex'));
  const committer = data.indexOf('\ncommitter ', at, 'latin1');
  const end = data.indexOf('\n', committer + 1, 'latin1');
  const line = data.toString('latin1', committer, end < 0 ? data.length : end);
  return { tree, parents, time: Number.parseInt(line.slice(line.lastIndexOf('>') + 1), 10) || 0 };
}
