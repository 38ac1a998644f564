import { readdir, readFile, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { ifMissing } from '#shared/files/if-missing.ts';
import { parseJson } from '#shared/parse-json.ts';
import { removeTree } from '../disk/trees.ts';
import type { Sandbox } from '../sandbox/open-sandbox.ts';
import type { SandboxRecord } from '../sandbox/sandbox-process.ts';

const identity = z.object({ pid: z.number(), startTicks: z.number(), bootId: z.string() });
const recordSchema = z.object({ id: z.string(), outer: identity, init: identity });

const recordFile = (base: string): string => `${base}/sandbox.json`;

/** Written as soon as a step runs, so that the platform after a crash can end it. */
export async function rememberSandbox(base: string, record: SandboxRecord): Promise<void> {
  await writeFile(recordFile(base), JSON.stringify(record));
}

/** Ends whatever still runs of an earlier attempt at a build and removes its directory. Harmless when there was none. */
export async function endLeftBuild(base: string, sandbox: Sandbox): Promise<void> {
  const text = await readFile(recordFile(base), 'utf8').catch(() => undefined);
  if (text !== undefined) {
    const record = parseRecord(text);
    if (record !== undefined) await sandbox.end(record);
  }
  await removeTree(base);
}

/** Ends what a crash left of builds, and removes their directories. To be called before any build. */
export async function removeLeftBuilds(dataDir: string, sandbox: Sandbox): Promise<void> {
  for (const name of await readdir(`${dataDir}/builds`).catch(ifMissing([])))
    await endLeftBuild(`${dataDir}/builds/${name}`, sandbox);
}

/** Undefined for a file that was cut short: its sandbox died with the platform that wrote it. */
function parseRecord(text: string): SandboxRecord | undefined {
  return recordSchema.safeParse(parseJson(text)).data;
}
