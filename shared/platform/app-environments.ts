/** Port: that an app and its tenant exist on the platform, before anything of the app runs there and until all of it is gone. */
import type { AppId, TenantId } from '#shared/ids.ts';

/** The verbs of app environments. */
export interface AppEnvironments {
  /**
   * Makes what the app's processes will need around them; again is harmless. SPEC.md §2, creating an app.
   *
   * Kubernetes: the tenant's namespace with its pod-security labels, ResourceQuota, LimitRange and NetworkPolicies, and the
   * app's Services. The certificate of its host is a matter of the port Certificates.
   */
  ensureApp(app: AppEnvironment): Promise<void>;
  /**
   * Removes it, once nothing of the app runs and its add-ons, images and caches are gone. False when there was nothing.
   *
   * Kubernetes: deletes the app's Services; the namespace with the tenant's last app.
   */
  deleteApp(appId: AppId): Promise<boolean>;
}

/** The app, and whose it is. */
export interface AppEnvironment {
  appId: AppId;
  appName: string;
  tenantId: TenantId;
  /** The app's subdomain, without port. */
  host: string;
}
