import { closeSync, openSync, readdirSync, writeSync } from 'node:fs';
import { systemCall } from './system-call.ts';

/** Directories that it can write to, besides /proc. */
function findWritable(): string[] {
  const found: string[] = [];
  const visit = (path: string, depth: number): void => {
    const probe = `${path}/.probe`;
    try {
      closeSync(openSync(probe, 'w'));
      found.push(path);
    } catch {
      // Not to be written.
    }
    if (depth === 0) return;
    for (const entry of listDirectories(path)) visit(`${path === '/' ? '' : path}/${entry}`, depth - 1);
  };
  visit('/', 3);
  return found;
}

function listDirectories(path: string): string[] {
  if (/^\/(proc|usr)/.test(path)) return [];
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name);
  } catch {
    return [];
  }
}

/** Reserves space in files of every directory that it can write to, and in its output; MiB by place. */
function reserveDisk({ mebibytes, directories }: { mebibytes: number; directories?: string[] }): Record<string, number> {
  const reserved: Record<string, number> = {};
  const reserve = (place: string, descriptor: number): boolean => {
    const size = 256 * 1024 * 1024;
    const at = (reserved[place] ?? 0) * 1024 * 1024;
    if (systemCall({ x64: 285, arm64: 47 }, descriptor, 0, at, size).errno !== 0) return false;
    reserved[place] = (reserved[place] ?? 0) + 256;
    return true;
  };
  for (const descriptor of [1, 2])
    while ((reserved[`descriptor ${descriptor}`] ?? 0) < mebibytes && reserve(`descriptor ${descriptor}`, descriptor));
  for (const directory of directories ?? findWritable()) {
    const file = openSync(`${directory}/.reserved`, 'w');
    while ((reserved[directory] ?? 0) < mebibytes && reserve(directory, file));
    closeSync(file);
  }
  return reserved;
}

/** Prints as fast as it can. */
/** Prints so much, or for so long. */
function floodOutput({ mebibytes, seconds }: { mebibytes: number; seconds: number }): void {
  const line = `${'flood '.repeat(1000)}\n`;
  const until = Date.now() + seconds * 1000;
  for (let written = 0; written < mebibytes * 1024 * 1024 && Date.now() < until; ) {
    try {
      written += writeSync(1, line);
    } catch {
      // The pipe is full: others have to read.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}

export const diskAttempts = { findWritable, reserveDisk, floodOutput };
