/** Branded identifiers: the compiler rejects a plain string, or an id of another kind, where an id is expected. */

declare const brand: unique symbol;
type Brand<Name extends string> = string & { readonly [brand]: Name };

/** UUIDv4. */
export type AppId = Brand<'AppId'>;
/** 8 characters of [a-z0-9]; with an app id `kvstore-{tenant_id}-{app_id}` is then exactly 53 characters. */
export type TenantId = Brand<'TenantId'>;
/** UUIDv4, or the `sub` of an outside identity provider. */
export type UserId = Brand<'UserId'>;
/** UUIDv4. */
export type BuildId = Brand<'BuildId'>;
/** UUIDv4. */
export type ReleaseId = Brand<'ReleaseId'>;
/** UUIDv4. */
export type DeployId = Brand<'DeployId'>;
/** UUIDv4. */
export type RunId = Brand<'RunId'>;
/** UUIDv4. */
export type SshKeyId = Brand<'SshKeyId'>;
/** UUIDv4 with the embedded issuer. */
export type SessionId = Brand<'SessionId'>;
/** UUIDv4. */
export type ApiTokenId = Brand<'ApiTokenId'>;
/** UUIDv4; of one user in one tenant. */
export type MembershipId = Brand<'MembershipId'>;
/** UUIDv4. */
export type InvitationId = Brand<'InvitationId'>;
/** Equal to the id of the app that owns the repository. A preview app uses its parent's. */
export type RepositoryId = Brand<'RepositoryId'>;

/** 40 lower-case hex digits. */
export type ObjectId = Brand<'ObjectId'>;

const tenantAlphabet = 'abcdefghijklmnopqrstuvwxyz0123456789';
const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** A random UUIDv4. */
export function newUuid<Id extends Brand<string>>(): Id {
  return crypto.randomUUID() as string as Id;
}

/** A random tenant id: 8 characters of [a-z0-9], 41 bits. */
export function newTenantId(): TenantId {
  let id = '';
  while (id.length < 8) {
    // 252 is the largest multiple of 36 in a byte: below it every character is equally likely.
    const byte = crypto.getRandomValues(new Uint8Array(1))[0] ?? 255;
    if (byte < 252) id += tenantAlphabet.charAt(byte % 36);
  }
  return id as TenantId;
}

/** Whether the text is a UUID in lower case. */
export function isUuid(text: string): boolean {
  return uuidPattern.test(text);
}
