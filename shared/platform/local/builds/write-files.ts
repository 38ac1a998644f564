import { closeSync, fchownSync, lchownSync, mkdirSync, openSync, writeSync } from 'node:fs';

/** Directories and files to make below a root; parents come first. */
export interface FileBatch {
  root: string;
  /** Whom they are given to; undefined: they stay this process's. */
  owner: number | undefined;
  directories: string[];
  files: { path: string; mode: number; content: Uint8Array }[];
}

/** A system call that failed, with what it failed for: a path below the root. */
export interface FileFault {
  path: string;
  code: string;
  message: string;
}

/** Nothing that is there is written over, or through. Waits for the disk: for a thread of its own. */
export function writeFiles({ root, owner, directories, files }: FileBatch): FileFault | undefined {
  let current = '';
  try {
    for (const path of directories) {
      current = path;
      mkdirSync(`${root}/${path}`);
      if (owner !== undefined) lchownSync(`${root}/${path}`, owner, owner);
    }
    for (const { path, mode, content } of files) {
      current = path;
      const file = openSync(`${root}/${path}`, 'wx', mode);
      try {
        for (let at = 0; at < content.length; ) at += writeSync(file, content, at);
        if (owner !== undefined) fchownSync(file, owner, owner);
      } finally {
        closeSync(file);
      }
    }
    return undefined;
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    return { path: current, code, message };
  }
}
