import { AppError } from '#shared/errors.ts';
import type { AppId, TenantId } from '#shared/ids.ts';

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

/** Throws `validation_failed` with what a name must look like. */
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

/** `longest` characters at most, and never ending in "-" (which no orchestrator accepts). */
function cut(name: string, longest: number): string {
  return name.slice(0, longest).replace(/-+$/, '');
}

/** SPEC.md §2: the claim that holds an app's build cache. */
export function buildCacheName(appId: AppId): string {
  return `build-cache-${appId}`;
}

/** SPEC.md §2: the namespace of all builds and their caches. */
export const buildNamespace = 'paas-build';

/** SPEC.md §2: the key-value workload, cut at 53 characters. */
export function kvstoreName(tenantId: TenantId, appId: AppId): string {
  return cut(`kvstore-${tenantId}-${appId}`, 53);
}

/** SPEC.md §2: the secret that holds how to reach an add-on. */
export function authSecretName(workloadName: string): string {
  return `${workloadName}-auth`;
}

/** The preview app of a branch: `<app>-<branch>`, made fit for a subdomain. */
export function previewName(appName: string, branch: string): string {
  const slug = branch
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '');
  return cut(`${appName}-${slug}`, 40);
}
