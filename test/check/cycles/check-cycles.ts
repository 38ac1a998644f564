/** A part of `npm run check`: neither folders nor files of the product import each other in a circle. */
import { fileURLToPath } from 'node:url';
import { describeCycle } from './describe-cycle.ts';
import { findFileCycles, findFolderCycles } from './find-cycles.ts';
import { readImports } from './read-imports.ts';

const rooms = ['api', 'cli', 'dashboard', 'deploy', 'gateway', 'shared', 'sshd'];

const imports = readImports(fileURLToPath(new URL('../../..', import.meta.url)), rooms);
const cycles = [...findFolderCycles(imports), ...findFileCycles(imports)];
for (const cycle of cycles) console.log(describeCycle(cycle));
if (cycles.length > 0) process.exitCode = 1;
