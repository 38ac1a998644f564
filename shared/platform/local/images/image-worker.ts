/**
 * Runs on a worker thread (`seal-image.ts`): makes a built tree immutable and computes its digest. Code of the tenant may run meanwhile and hold
 * directories of the tree open: a build can pass them to the running app (decision 25).
 */
import { createHash, type Hash } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  lchownSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  rmSync,
  type Stats,
} from 'node:fs';
import { parentPort } from 'node:worker_threads';
import { isOfContainer, type UserRange } from '../sandbox/user-ranges.ts';

export interface SealRequest {
  /** Absolute. */
  readonly directory: string;
  /** Uid that the files are given to; undefined: their owner does not change. */
  readonly owner: number | undefined;
  /** The users of a container image, whose files keep their owners and modes; undefined for other images. */
  readonly users?: UserRange | undefined;
  readonly longestBytes: number;
}

/** `tooLarge` as soon as the files exceed `longestBytes`, `tooDeep` for a path that is too long for the kernel. */
export type SealAnswer =
  | { readonly manifestDigest: string; readonly bytes: number; readonly files: number }
  | { readonly tooLarge: true }
  | { readonly tooDeep: true };

const slash = Buffer.from('/');
const buffer = Buffer.allocUnsafe(1024 * 1024);

/**
 * Computes the SHA-256 over kind, mode, content hash and path of each entry in path order. Paths are bytes, since names need not be
 * UTF-8. Files become 0644 or 0755, directories 0755; sockets, pipes and devices are removed. In a container image, owners and permissions
 * count and stay; files of users that it does not have become root's, and setuid and setgid go.
 *
 * As root it takes each directory over before it looks inside, and gives it away after everything below was visited: what it finds
 * in a directory cannot be replaced by a link to a directory of the host before it is opened.
 */
function seal({ directory, owner, users, longestBytes }: SealRequest): SealAnswer {
  const manifest = createHash('sha256');
  let bytes = 0;
  let files = 0;
  const visit = (path: Buffer, name: Buffer): boolean => {
    const facts = lstatSync(path);
    const kept = users === undefined ? undefined : keepOwner(facts, users);
    if (kept !== undefined) manifest.update(`${kept.uid - kept.root} ${kept.gid - kept.root} ${kept.mode.toString(8)} `);
    const [uid, gid] = [kept?.uid ?? owner, kept?.gid ?? owner];
    if (facts.isSymbolicLink()) {
      const target = readlinkSync(path, 'buffer');
      record(manifest, 'symlink', createHash('sha256').update(target).digest('hex'), name);
    } else if (facts.isDirectory()) {
      if (owner !== undefined) lchownSync(path, 0, 0);
      // Whatever the mode was a moment ago. It also limits what access lists of the directory allow.
      chmodSync(path, 0o755);
      record(manifest, 'directory', '', name);
      for (const entry of readdirSync(path, { encoding: 'buffer' }).sort(Buffer.compare)) {
        if (!visit(Buffer.concat([path, slash, entry]), Buffer.concat([name, slash, entry]))) return false;
      }
      if (kept !== undefined) chmodSync(path, kept.mode);
      if (uid !== undefined && gid !== undefined) lchownSync(path, uid, gid);
      return true;
    } else if (facts.isFile()) {
      bytes += facts.size;
      files += 1;
      if (bytes > longestBytes) return false;
      const executable = (facts.mode & 0o111) !== 0;
      const mode = kept?.mode ?? (executable ? 0o755 : 0o644);
      if ((facts.mode & 0o7777) !== mode) chmodSync(path, mode);
      record(manifest, executable ? 'executable' : 'file', hashFile(path), name);
    } else {
      rmSync(path);
      return true;
    }
    if (uid !== undefined && gid !== undefined && (facts.uid !== uid || facts.gid !== gid)) lchownSync(path, uid, gid);
    return true;
  };
  return visit(Buffer.from(directory), Buffer.alloc(0))
    ? { manifestDigest: manifest.digest('hex'), bytes, files }
    : { tooLarge: true };
}

/** Owner and mode that an entry of a container image has from now on. */
function keepOwner(facts: Stats, users: UserRange): { uid: number; gid: number; mode: number; root: number } {
  const inside = (id: number): number => (isOfContainer(id, users) ? id : users.root);
  return { uid: inside(facts.uid), gid: inside(facts.gid), mode: facts.mode & 0o1777, root: users.root };
}

function record(manifest: Hash, kind: string, content: string, name: Buffer): void {
  manifest.update(`${kind} ${content} ${name.length} `).update(name);
}

function hashFile(path: Buffer): string {
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const hash = createHash('sha256');
    for (let left = fstatSync(file).size; left > 0; ) {
      const read = readSync(file, buffer, 0, buffer.length, null);
      if (read === 0) break;
      hash.update(buffer.subarray(0, read));
      left -= read;
    }
    return hash.digest('hex');
  } finally {
    closeSync(file);
  }
}

function answer(request: SealRequest): SealAnswer {
  try {
    return seal(request);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENAMETOOLONG') return { tooDeep: true };
    throw error;
  }
}

parentPort?.on('message', (request: SealRequest) => parentPort?.postMessage(answer(request)));
