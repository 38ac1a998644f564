/**
 * Runs in the sandbox of a build, before buildah. Gives files that did not change the modification times that they had in the last build:
 * buildah takes a copied file for another one when its time differs, and a push writes all files anew. Times of changed files stay, since web
 * servers tell browsers by them what has changed.
 *
 * Arguments: the directory, and the file of the cache that has the times.
 */
import { createHash } from 'node:crypto';
import { lstatSync, lutimesSync, readdirSync, readFileSync, readlinkSync, renameSync, writeFileSync } from 'node:fs';

/** Seconds by path and content. */
type Times = Record<string, number>;

const [directory = '', cache = ''] = process.argv.slice(2);

function readTimes(): Times {
  try {
    return JSON.parse(readFileSync(cache, 'utf8')) as Times;
  } catch {
    return {}; // the first build, or one that was ended while it wrote the file
  }
}

function describe(path: string): { key: string; children: readonly string[] } {
  const facts = lstatSync(path);
  if (facts.isDirectory()) return { key: 'directory', children: readdirSync(path) };
  const content = facts.isSymbolicLink() ? readlinkSync(path, 'buffer') : readFileSync(path);
  return { key: `${facts.mode} ${createHash('sha256').update(content).digest('hex')}`, children: [] };
}

const before = readTimes();
const now: Times = {};

function visit(path: string): void {
  const { key, children } = describe(path);
  for (const name of children) visit(`${path}/${name}`);
  const entry = `${key} ${path}`;
  const seconds = before[entry] ?? Math.floor(Date.now() / 1000);
  now[entry] = seconds;
  lutimesSync(path, seconds, seconds);
}

visit(directory);
writeFileSync(`${cache}.new`, JSON.stringify(now));
renameSync(`${cache}.new`, cache);
