import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { passDirectory } from './directory-passing.ts';
import { systemCall } from './system-call.ts';

/** Runs a step and ignores that it was refused: what came of it is seen from outside. */
function tryTo(step: () => void): void {
  try {
    step();
  } catch {
    // Refused.
  }
}

const atWorkingDirectory = -100;
const modes = { fifo: 0o010666, character: 0o020666, block: 0o060666 } as const;

function makeNode(path: string, mode: number, device = 0): number {
  return systemCall({ x64: 259, arm64: 33 }, atWorkingDirectory, path, mode, device).errno;
}

/** The paths that can be read, with the start of their content. */
function readPaths({ paths }: { paths: string[] }): string[] {
  const prefixes = [
    '',
    '/proc/1/root',
    '/proc/self/root',
    '/proc/1/cwd/../../../..',
    '/proc/self/cwd/../../../../..',
    '/app/../../../../..',
  ];
  return prefixes.flatMap((prefix) =>
    paths.flatMap((path) => {
      try {
        const text = statSync(prefix + path).isDirectory()
          ? readdirSync(prefix + path).join(' ')
          : readFileSync(prefix + path, 'utf8');
        return [`${prefix}${path}: ${text.slice(0, 200)}`];
      } catch {
        return [];
      }
    }),
  );
}

/** The paths that can be created or written. */
function writePaths({ paths }: { paths: string[] }): string[] {
  return paths.filter((path) => {
    try {
      writeFileSync(path, 'owned');
      return true;
    } catch {
      return false;
    }
  });
}

/** Leaves files in the app that must not get into an image: programs with the set-user-id bit, devices, pipes. */
function leaveOddFiles({ directory }: { directory: string }): string {
  mkdirSync(directory, { recursive: true });
  tryTo(() => {
    copyFileSync('/bin/sh', join(directory, 'shell'));
    chmodSync(join(directory, 'shell'), 0o6755);
  });
  for (const program of ['su', 'mount', 'passwd']) tryTo(() => linkSync(`/usr/bin/${program}`, join(directory, program)));
  makeNode(join(directory, 'fifo'), modes.fifo);
  makeNode(join(directory, 'whiteout'), modes.character);
  makeNode(join(directory, 'disk'), modes.block, 0x800);
  makeNode(join(directory, 'memory'), modes.character, 0x101);
  tryTo(() => chmodSync(join(directory, 'shell'), 0o6777));
  // An attribute with rights, and those by which overlays of other users mark files: setxattr(2).
  const capability = Buffer.from('0100000200000000ffffffff00000000ffffffff', 'hex');
  for (const [name, value] of [
    ['security.capability', capability],
    ['trusted.overlay.redirect', Buffer.from('/etc')],
    ['user.overlay.redirect', Buffer.from('/etc')],
  ] as const)
    systemCall({ x64: 188, arm64: 5 }, join(directory, 'shell'), name, value, value.length, 0);
  return readdirSync(directory).join(' ');
}

/** Puts what is not a file where the platform looks for files after the build. */
function replaceFiles({ paths, target }: { paths: string[]; target: string }): void {
  for (const [index, path] of paths.entries()) {
    rmSync(path, { recursive: true, force: true });
    if (index % 2 === 0) makeNode(path, modes.fifo);
    else symlinkSync(target, path);
  }
}

/** Names that no text can hold: invalid UTF-8, a line break, 255 bytes. Made by a shell, since they are bytes. */
function leaveOddNames({ directory }: { directory: string }): void {
  mkdirSync(directory, { recursive: true });
  for (const name of [
    Buffer.from([0xff, 0xfe, 0x80]),
    Buffer.from('line\nbreak'),
    Buffer.from('-rf'),
    Buffer.alloc(255, 'n'),
    Buffer.from('\x1b[2J'),
  ])
    writeFileSync(Buffer.concat([Buffer.from(`${directory}/`), name]), 'x');
}

/** Directories in one another until no path leads to the innermost. */
function leaveDeepDirectories({ directory, depth }: { directory: string; depth: number }): string {
  mkdirSync(directory, { recursive: true });
  const home = process.cwd();
  process.chdir(directory);
  let made = 0;
  try {
    for (; made < depth; made++) {
      mkdirSync('deeper');
      process.chdir('deeper');
    }
  } catch (error) {
    return `${made} of ${depth}: ${String(error)}`;
  } finally {
    process.chdir(home);
  }
  return String(made);
}

/** A process that ends as programs do when they write their memory to disk; the descriptors' limit as the kernel has it. */
function dumpCore(): string {
  tryTo(() => execFileSync(process.execPath, ['-e', 'process.abort()'], { stdio: 'ignore', cwd: '/tmp' }));
  return readdirSync('/tmp')
    .filter((name) => name.startsWith('core'))
    .join(' ');
}

/** Starts the process that a build passes its directory to. */
async function awaitDirectory({ milliseconds }: { milliseconds: number }): Promise<void> {
  const script = fileURLToPath(new URL('./directory-passing.ts', import.meta.url));
  const child = spawn(process.execPath, ['--no-warnings', script, String(milliseconds)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
}

export const fileAttempts = {
  awaitDirectory,
  passDirectory,
  readPaths,
  writePaths,
  leaveOddFiles,
  replaceFiles,
  leaveOddNames,
  leaveDeepDirectories,
  dumpCore,
};
