/** A part of `npm run check`: neither folders nor files of the product import each other in a circle. */
import { fileURLToPath } from 'node:url';
import { findFileCycles, findFolderCycles } from './find-cycles.ts';
import { judgeCycles } from './judge-cycles.ts';
import { knownFileCycles, knownFolderCycles } from './known-cycles.ts';
import { readImports } from './read-imports.ts';

const rooms = ['api', 'cli', 'dashboard', 'deploy', 'gateway', 'shared', 'sshd'];

const imports = readImports(fileURLToPath(new URL('../../..', import.meta.url)), rooms);
const problems = [
  ...judgeCycles(findFolderCycles(imports), knownFolderCycles),
  ...judgeCycles(findFileCycles(imports), knownFileCycles),
];
for (const problem of problems) console.log(problem);
if (problems.length > 0) process.exitCode = 1;
