import type { AppId } from '#shared/ids.ts';

/** HMAC-SHA256. */
async function sign(key: Uint8Array<ArrayBuffer>, message: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const imported = await crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  return new Uint8Array(await crypto.subtle.sign('HMAC', imported, message));
}

/**
 * The secret of an app's own webhook. It is derived from PAAS_WEBHOOK_SECRET, so changing that changes it, and it is stored
 * nowhere. It has the form of a GitLab signing token; other git hosts accept any text.
 */
export async function appWebhookSecret(platformSecret: string, appId: AppId): Promise<string> {
  const encoder = new TextEncoder();
  const derived = await sign(encoder.encode(platformSecret), encoder.encode(`paas webhook of app ${appId}`));
  return `whsec_${derived.toBase64()}`;
}
