import { readdirSync, readFileSync } from 'node:fs';

const closeOnExec = 0o2000000;

/**
 * File descriptors that this process inherited from its parent, from `first` on. Node would pass them on to programs that it starts;
 * descriptors that it opens itself it does not pass on.
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
