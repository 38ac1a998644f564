import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { stringify } from 'yaml';

/** What a planner returns is what the file in `golden/` says. `vitest -u` writes the file. */
export async function expectGolden(name: string, objects: readonly object[]): Promise<void> {
  const text = objects.map((object) => stringify(object, { lineWidth: 0 })).join('---\n');
  await expect(text).toMatchFileSnapshot(fileURLToPath(new URL(`../golden/${name}.yaml`, import.meta.url)));
}
