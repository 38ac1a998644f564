import type { SandboxLink, SandboxMount } from '../sandbox/sandbox.ts';

/** A part of the platform or of the host that is shown inside, named by what it is so that images survive its moving. */
export type ToolchainMount =
  | { readonly kind: 'host'; readonly path: string }
  | { readonly kind: 'platform'; readonly name: PlatformPart };

export const platformParts = ['node', 'npm', 'static-server'] as const;
export type PlatformPart = (typeof platformParts)[number];

/** Where the platform's own parts are seen inside. */
export const partTargets: Readonly<Record<PlatformPart, string>> = {
  node: '/opt/paas/node/bin/node',
  npm: '/opt/paas/node/lib/node_modules/npm',
  'static-server': '/opt/paas/static-server.ts',
};

/** Programs of the parts, where Node's own archive has them. */
const partLinks: Partial<Record<PlatformPart, readonly SandboxLink[]>> = {
  npm: ['npm', 'npx'].map((name) => ({ target: `/opt/paas/node/bin/${name}`, linkTo: `${partTargets.npm}/bin/${name}-cli.js` })),
};

export function resolveToolchain(
  mounts: readonly ToolchainMount[],
  parts: Readonly<Record<PlatformPart, string>>,
): readonly SandboxMount[] {
  return mounts.flatMap((mount) =>
    mount.kind === 'host'
      ? [{ source: mount.path, target: mount.path }]
      : [{ source: parts[mount.name], target: partTargets[mount.name] }, ...(partLinks[mount.name] ?? [])],
  );
}
