import { readdir, readFile } from 'node:fs/promises';
import { z } from 'zod';
import { ifMissing } from '#shared/files/if-missing.ts';

const schema = z.looseObject({
  toolchain: z.array(z.looseObject({ kind: z.string(), name: z.string().optional(), version: z.string().optional() })),
});

/** Tools of the store that any image is run with: 'node/22.19.0'. */
export async function listNeededTools(dataDir: string): Promise<ReadonlySet<string>> {
  const base = `${dataDir}/images`;
  const needed = new Set<string>();
  for (const app of await readdir(base).catch(ifMissing([] as string[]))) {
    if (app.startsWith('.')) continue;
    for (const digest of await readdir(`${base}/${app}`).catch(ifMissing([] as string[]))) {
      const text = await readFile(`${base}/${app}/${digest}/image.json`, 'utf8').catch(ifMissing(undefined));
      if (text === undefined) continue;
      for (const { kind, name, version } of schema.parse(JSON.parse(text)).toolchain)
        if (kind === 'stored') needed.add(`${name}/${version}`);
    }
  }
  return needed;
}
