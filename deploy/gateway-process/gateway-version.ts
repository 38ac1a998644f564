import { createHash } from 'node:crypto';
import { readdir, readFile, realpath } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join, relative } from 'node:path';
import { ifMissing } from '#shared/files/if-missing.ts';

/** An import or re-export at the start of a line; types alone are erased before Node sees them. */
const staticImport = /^(?:import|export)(?! type\b)\s+(?:[\w*{}\s,$]*?\sfrom\s+)?['"]([^'"\n]+)['"]/gm;
const dynamicImport = /\bimport\(\s*['"]([^'"\n]+)['"]\s*\)/g;
/** A file beside the module, such as a worker thread's. */
const fileReference = /\bnew URL\(\s*['"]([^'"\n]+)['"],\s*import\.meta\.url/g;

/**
 * A hash that differs whenever a gateway process would run other code: another file that `deploy/gateway.ts` imports,
 * another package (lockfile, patches), or another Node. A gateway of another version is replaced.
 * @param root the checkout
 */
export async function readGatewayVersion(root: string): Promise<string> {
  const hash = createHash('sha256').update(process.version);
  const patches = (await readdir(join(root, 'patches')).catch(ifMissing([]))).map((name) => join('patches', name));
  const files = [...(await listGatewayFiles(root)), ...patches.sort(), 'bun.lockb', 'package.json'];
  for (const name of files) hash.update(name).update(await readFile(join(root, name)));
  return hash.digest('hex').slice(0, 16);
}

/**
 * The project's own files that a gateway process loads, found by following imports from `deploy/gateway.ts`.
 * @returns sorted paths, relative to the root
 * @throws Error for an import that leads nowhere
 */
export async function listGatewayFiles(root: string): Promise<string[]> {
  const found = new Set<string>();
  const follow = async (file: string): Promise<void> => {
    if (found.has(file)) return;
    found.add(file);
    const source = await readFile(file, 'utf8');
    const { resolve } = createRequire(file);
    const specifiers = [staticImport, dynamicImport, fileReference].flatMap((pattern) =>
      [...source.matchAll(pattern)].map(([, specifier = '']) => specifier),
    );
    // Anything else is a package, or comes with Node.
    const own = specifiers.filter((specifier) => /^[.#]/.test(specifier));
    await Promise.all(own.map((specifier) => follow(resolve(specifier))));
  };
  // Resolved paths have no symbolic links in them.
  const realRoot = await realpath(root);
  await follow(join(realRoot, 'deploy', 'gateway.ts'));
  return [...found].map((file) => relative(realRoot, file)).sort();
}
