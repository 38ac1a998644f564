import { afterAll, vi } from 'vitest';
import { openDatabases } from '#test/support/database/open-databases.ts';

/** What a file finds when it starts. */
export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly directory: string;
}

export const readSurroundings = (): Surroundings => ({ env: { ...process.env }, directory: process.cwd() });

/**
 * Fails a file that leaves behind what the next file of its process would meet. Registered by the set-up file of every test
 * file, so that it runs after the file's own hooks.
 */
export function failOnLeftovers(): void {
  const before = readSurroundings();
  afterAll(() => {
    const left = findLeftovers(before);
    if (left.length > 0) throw new Error(`This file left ${left.join('; ')}.`);
  });
}

/** What is there now and was not before, and what to do about it. */
export function findLeftovers({ env, directory }: Surroundings): string[] {
  const names = new Set([...Object.keys(env), ...Object.keys(process.env)]);
  const changed = [...names].filter((name) => env[name] !== process.env[name]);
  return [
    ...(openDatabases.size === 0 ? [] : [`${openDatabases.size} open test database(s): close what createTestDatabase gave`]),
    ...(vi.isFakeTimers() ? ['fake timers: call vi.useRealTimers()'] : []),
    ...(changed.length === 0 ? [] : [`a changed environment (${changed.join(', ')}): put it back`]),
    ...(process.cwd() === directory ? [] : ['another working directory: go back']),
  ];
}
