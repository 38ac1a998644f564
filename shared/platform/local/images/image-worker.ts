/** Runs on a worker thread: makes a built tree immutable and computes its digest. No code of the tenant may run meanwhile. */
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
import { parentPort, workerData } from 'node:worker_threads';

export interface SealRequest {
  /** Absolute. */
  readonly directory: string;
  /** Uid that the files are given to; undefined: their owner does not change. */
  readonly owner: number | undefined;
  readonly longestBytes: number;
}

/** `tooLarge` as soon as the files exceed `longestBytes`. */
export type SealAnswer =
  | { readonly manifestDigest: string; readonly bytes: number; readonly files: number }
  | { readonly tooLarge: true };

const slash = Buffer.from('/');
const buffer = Buffer.allocUnsafe(1024 * 1024);

/**
 * Computes the SHA-256 over kind, mode, content hash and path of each entry in path order. Paths are bytes, since names need not be
 * UTF-8. Files become 0644 or 0755, directories 0755; sockets and pipes are removed.
 */
function seal({ directory, owner, longestBytes }: SealRequest): SealAnswer {
  const manifest = createHash('sha256');
  let bytes = 0;
  let files = 0;
  const visit = (path: Buffer, name: Buffer): boolean => {
    const facts = lstatSync(path);
    if (facts.isSymbolicLink()) {
      const target = readlinkSync(path, 'buffer');
      record(manifest, 'symlink', createHash('sha256').update(target).digest('hex'), name);
    } else if (facts.isDirectory()) {
      setMode(path, facts, 0o755);
      record(manifest, 'directory', '', name);
      for (const entry of readdirSync(path, { encoding: 'buffer' }).sort(Buffer.compare)) {
        if (!visit(Buffer.concat([path, slash, entry]), Buffer.concat([name, slash, entry]))) return false;
      }
    } else if (facts.isFile()) {
      bytes += facts.size;
      files += 1;
      if (bytes > longestBytes) return false;
      const executable = (facts.mode & 0o111) !== 0;
      setMode(path, facts, executable ? 0o755 : 0o644);
      record(manifest, executable ? 'executable' : 'file', hashFile(path), name);
    } else {
      rmSync(path);
      return true;
    }
    if (owner !== undefined && (facts.uid !== owner || facts.gid !== owner)) lchownSync(path, owner, owner);
    return true;
  };
  return visit(Buffer.from(directory), Buffer.alloc(0))
    ? { manifestDigest: manifest.digest('hex'), bytes, files }
    : { tooLarge: true };
}

function setMode(path: Buffer, facts: Stats, mode: number): void {
  if ((facts.mode & 0o7777) !== mode) chmodSync(path, mode);
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

parentPort?.postMessage(seal(workerData as SealRequest));
