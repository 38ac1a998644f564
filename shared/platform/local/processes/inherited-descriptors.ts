import { readdirSync, readFileSync } from 'node:fs';

const closeOnExec = 0o2000000;

/**
 * Files that whoever started this process left open in it, from `first` on: Node closes its own when it starts a program,
 * these it would hand on. Nothing that this process opens is ever among them.
 */
export function readInheritedDescriptors(first: number): readonly number[] {
  return readdirSync('/proc/self/fd')
    .map(Number)
    .filter((descriptor) => descriptor >= first && isInherited(descriptor))
    .sort((one, other) => one - other);
}

function isInherited(descriptor: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8'))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & closeOnExec) === 0;
  } catch {
    return false; // the directory itself, which is closed by now
  }
}
