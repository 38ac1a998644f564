import { mkdir } from 'node:fs/promises';
import type { SandboxLink, SandboxMount } from '../sandbox/sandbox.ts';
import { listRootMounts } from './debian/debian-roots.ts';
import { isDebianTool } from './debian/debian-tools.ts';
import { type StoredTool, targetOf } from './stored-tools.ts';
import type { ToolStore } from './tool-store.ts';

/** A part of the platform or of the host that is shown inside, named by what it is so that images survive its moving. */
export type ToolchainMount =
  | { readonly kind: 'host'; readonly path: string }
  | { readonly kind: 'platform'; readonly name: PlatformPart }
  | ({ readonly kind: 'stored' } & StoredTool);

export const platformParts = ['node', 'node-headers', 'npm', 'static-server', 'php-server'] as const;
export type PlatformPart = (typeof platformParts)[number];

/** Where the platform's own parts are seen inside. */
export const partTargets: Readonly<Record<PlatformPart, string>> = {
  node: '/opt/paas/node/bin/node',
  'node-headers': '/opt/paas/node/include',
  npm: '/opt/paas/node/lib/node_modules/npm',
  'static-server': '/opt/paas/static-server',
  'php-server': '/opt/paas/php-server',
};

/** Programs of the parts, where Node's own archive has them. */
const partLinks: Partial<Record<PlatformPart, readonly SandboxLink[]>> = {
  npm: ['npm', 'npx'].map((name) => ({ target: `/opt/paas/node/bin/${name}`, linkTo: `${partTargets.npm}/bin/${name}-cli.js` })),
  // The name by which images of earlier versions start it.
  'static-server': [{ target: '/opt/paas/static-server.ts', linkTo: '/opt/paas/static-server/main.ts' }],
};

/** Where toolchains are on this machine. */
export interface ToolchainPlaces {
  readonly parts: Readonly<Record<PlatformPart, string>>;
  readonly store: Pick<ToolStore, 'ensureTool'>;
}

/** Installs tools of the store that are missing. @throws BuildFailure if one cannot be installed */
export async function resolveToolchain(
  mounts: readonly ToolchainMount[],
  { parts, store }: ToolchainPlaces,
): Promise<readonly SandboxMount[]> {
  const resolved = mounts.map(async (mount): Promise<readonly SandboxMount[]> => {
    switch (mount.kind) {
      case 'host':
        return [{ source: mount.path, target: mount.path }];
      case 'stored':
        return isDebianTool(mount.name)
          ? listRootMounts(await store.ensureTool(mount))
          : [{ source: await store.ensureTool(mount), target: targetOf(mount) }];
      case 'platform':
        return [{ source: parts[mount.name], target: partTargets[mount.name] }, ...(partLinks[mount.name] ?? [])];
    }
  });
  const unique = new Map((await Promise.all(resolved)).flat().map((mount) => [mount.target, mount]));
  const all = [...unique.values()];
  // Before what is mounted below it.
  const system = all.find(({ target }) => target === '/usr');
  if (system === undefined || !('source' in system)) return all;
  for (const { target } of all)
    if (target.startsWith('/usr/')) await mkdir(`${system.source}${target.slice('/usr'.length)}`, { recursive: true });
  return [system, ...all.filter((mount) => mount !== system)];
}
