/** Names and labels of what the driver creates; those of SPEC.md are in shared/names.ts. */
import type { AppId, TenantId } from '#shared/ids.ts';
import type { AddonType } from '#shared/platform/addons.ts';

/** On every object of the platform. */
export const managedLabels = { 'app.kubernetes.io/managed-by': 'paas' } as const;

/** By which the tenants' namespaces are told from all others, also by the chart's admission policy. */
export const tenantNamespacePrefix = 'tenant-';

/** The namespace in which a tenant's apps and their add-ons run. */
export function tenantNamespace(tenantId: TenantId): string {
  return `${tenantNamespacePrefix}${tenantId}`;
}

/** Of the app's web process: its Deployment, Rollout, HTTPRoute, and the Service of the release that serves. */
export function appObjectName(appId: AppId): string {
  return `app-${appId}`;
}

/** The Service of the release that is rolled out. */
export function canaryServiceName(appId: AppId): string {
  return `${appObjectName(appId)}-canary`;
}

/** SPEC.md §2 for the key-value store, `app-{app_id}-kvstore-url`: what an add-on gives the app. */
export function bindingSecretName(appId: AppId, type: AddonType): string {
  return `${appObjectName(appId)}-${type}-url`;
}

/** SPEC.md §2: lets app pods reach add-ons of the type. */
export function addonPolicyName(type: AddonType): string {
  return `allow-app-${type}`;
}

/** By which all objects of an app are found. */
export function appLabels(appId: AppId): Record<string, string> {
  return { ...managedLabels, 'app-id': appId };
}

/** Of pods that run an app's own code; policies for their network select them. */
export const processLabels = { 'app.kubernetes.io/component': 'process' } as const;

/** Of pods of add-ons of a type. */
export function addonLabels(type: AddonType): Record<string, string> {
  return { 'app.kubernetes.io/component': 'addon', 'addon-type': type };
}

/** Of the pods of the platform's own worker, as the chart labels them. */
export const workerLabels = { 'app.kubernetes.io/name': 'paas', 'app.kubernetes.io/component': 'worker' } as const;

/** What Argo Rollouts adds to the selectors of an app's Services: the release that each leads to. */
export const releaseHashLabel = 'rollouts-pod-template-hash';
