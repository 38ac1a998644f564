import type { AppId } from '#shared/ids.ts';

/** HMAC-SHA256. */
async function sign(key: Uint8Array<ArrayBuffer>, message: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const imported = await crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  return new Uint8Array(await crypto.subtle.sign('HMAC', imported, message));
}

/**
 * What an app's own webhook is signed with: derived from PAAS_WEBHOOK_SECRET, so that it ends with it, and kept nowhere.
 * In the form of a GitLab signing token, which the others take as any text.
 */
export async function appWebhookSecret(platformSecret: string, appId: AppId): Promise<string> {
  const encoder = new TextEncoder();
  const derived = await sign(encoder.encode(platformSecret), encoder.encode(`paas webhook of app ${appId}`));
  return `whsec_${derived.toBase64()}`;
}
