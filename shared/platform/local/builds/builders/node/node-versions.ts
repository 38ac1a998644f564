import { BuildFailure } from '#shared/platform/build-failure.ts';
import type { VersionRequest } from '../../../toolchains/toolchain.ts';
import type { VersionPins } from '../../plans/version-pins.ts';
import type { PackageJson } from './package-json.ts';

/** The Node.js that the app asks for; undefined: any. A pin in a file of its own is more exact than "engines". */
export function findNodeRequest(manifest: PackageJson, pins: VersionPins): VersionRequest | undefined {
  const pinned = pins.get('node');
  if (pinned?.source.endsWith('_NODE_VERSION') === true) return pinned;
  const { runtime } = manifest.devEngines ?? {};
  return (
    requestOf(manifest.volta?.['node'], '"volta" in package.json') ??
    pinned ??
    requestOf(manifest.engines?.['node'], '"engines" in package.json') ??
    (runtime?.name === 'node' ? requestOf(runtime.version, '"devEngines" in package.json') : undefined)
  );
}

/** What package.json or a file of pins asks for of a package manager or a runtime other than Node.js. */
export function findToolRequest(name: string, manifest: PackageJson, pins: VersionPins): VersionRequest | undefined {
  const declared = declaredManager(manifest);
  const { packageManager } = manifest.devEngines ?? {};
  return (
    (declared?.name === name ? declared.request : undefined) ??
    requestOf(manifest.volta?.[name], '"volta" in package.json') ??
    pins.get(name) ??
    requestOf(manifest.engines?.[name], '"engines" in package.json') ??
    (packageManager?.name === name ? requestOf(packageManager.version, '"devEngines" in package.json') : undefined)
  );
}

/** Of "packageManager": "pnpm@9.1.0+sha512.…"; the hash is the registry's to prove. Undefined without one. */
export function declaredManager(manifest: PackageJson): { name: string; request: VersionRequest | undefined } | undefined {
  const [, name, version] = /^\s*([a-z]+)(?:@([^+\s]+))?/.exec(manifest.packageManager ?? '') ?? [];
  return name === undefined ? undefined : { name, request: requestOf(version, '"packageManager" in package.json') };
}

function requestOf(version: unknown, source: string): VersionRequest | undefined {
  if (version === undefined || version === '') return undefined;
  if (typeof version !== 'string') throw new BuildFailure(`The version of ${source} must be a string.`);
  return { version, source };
}
