import { AppError } from '#shared/errors.ts';
import type { AppId, TenantId } from '#shared/ids.ts';

/** SPEC.md §2: in characters. */
export const maxAppNameLength = 40;

const appNamePattern = /^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$/;
const reservedNames = new Set([
  'admin',
  'api',
  'app',
  'apps',
  'auth',
  'console',
  'dashboard',
  'docs',
  'git',
  'help',
  'internal',
  'localhost',
  'login',
  'mail',
  'metrics',
  'ns',
  'ops',
  'paas',
  'root',
  'signup',
  'smtp',
  'ssh',
  'static',
  'status',
  'support',
  'system',
  'www',
]);

/** @throws AppError validation_failed with the rule that the name breaks */
export function checkAppName(name: string): void {
  const problem = !appNamePattern.test(name)
    ? 'must be 1 to 40 characters of a-z, 0-9 and "-", start with a letter and end with a letter or digit'
    : name.includes('--')
      ? 'must not contain "--"'
      : reservedNames.has(name)
        ? 'is reserved'
        : undefined;
  if (problem === undefined) return;
  throw new AppError('validation_failed', `The app name ${problem}.`, { details: [{ path: 'name', message: problem }] });
}

/** Cuts a name to `longest` characters and removes trailing "-", which Kubernetes rejects. */
function cut(name: string, longest: number): string {
  return name.slice(0, longest).replace(/-+$/, '');
}

/** SPEC.md §2: the volume claim with an app's build cache. */
export function buildCacheName(appId: AppId): string {
  return `build-cache-${appId}`;
}

/** SPEC.md §2: the namespace of all builds and their caches. */
export const buildNamespace = 'paas-build';

/** SPEC.md §2: the key-value workload, cut at 53 characters. */
export function kvstoreName(tenantId: TenantId, appId: AppId): string {
  return cut(`kvstore-${tenantId}-${appId}`, 53);
}

/** SPEC.md §2: the secret with the credentials of an add-on. */
export function authSecretName(workloadName: string): string {
  return `${workloadName}-auth`;
}

/** The name of a branch's preview app: `<app>-<branch>`, converted to a valid subdomain of at most 40 characters. */
export function previewName(appName: string, branch: string): string {
  const slug = branch
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '');
  return cut(`${appName}-${slug}`, maxAppNameLength);
}
