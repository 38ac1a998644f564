/** Which git host sent a delivery, and whether it knows the secret. Headers are asked for by lower-case name. */
export type ReadHeader = (name: string) => string | undefined;

export type WebhookProvider = 'github' | 'gitea' | 'forgejo' | 'gitlab' | 'generic';

interface Dialect {
  /** One of them is there: the delivery is of this provider. */
  marks: readonly string[];
  event: readonly string[];
  delivery: readonly string[];
  /** First that is there counts: a bad one is not mended by a good one behind it. */
  proofs: readonly Proof[];
}

type Proof = { header: string; kind: 'hex' | 'prefixed-hex' | 'token' | 'standard' };

const hubSignature: Proof = { header: 'x-hub-signature-256', kind: 'prefixed-hex' };
const giteaSignature: Proof = { header: 'x-gitea-signature', kind: 'hex' };
const standardSignature: Proof = { header: 'webhook-signature', kind: 'standard' };

/** Gitea and Forgejo also send the headers of those they stand in for: they are asked about first. */
const dialects: Record<WebhookProvider, Dialect> = {
  forgejo: {
    marks: ['x-forgejo-event', 'x-forgejo-delivery', 'x-forgejo-signature'],
    event: ['x-forgejo-event'],
    delivery: ['x-forgejo-delivery', 'x-gitea-delivery'],
    proofs: [{ header: 'x-forgejo-signature', kind: 'hex' }, giteaSignature, hubSignature],
  },
  gitea: {
    marks: ['x-gitea-event', 'x-gitea-delivery', 'x-gitea-signature'],
    event: ['x-gitea-event'],
    delivery: ['x-gitea-delivery'],
    proofs: [giteaSignature, hubSignature],
  },
  gitlab: {
    marks: ['x-gitlab-event', 'x-gitlab-token', 'x-gitlab-event-uuid'],
    event: ['x-gitlab-event'],
    // Stays the same when GitLab tries again.
    delivery: ['idempotency-key', 'x-gitlab-event-uuid'],
    proofs: [standardSignature, { header: 'x-gitlab-token', kind: 'token' }],
  },
  github: {
    marks: ['x-github-event', 'x-github-delivery'],
    event: ['x-github-event'],
    delivery: ['x-github-delivery'],
    proofs: [hubSignature],
  },
  generic: {
    marks: [],
    event: ['x-event-key', 'x-event'],
    delivery: ['webhook-id', 'x-delivery-id', 'x-request-uuid', 'idempotency-key'],
    proofs: [hubSignature, standardSignature],
  },
};

export interface SignedDelivery {
  provider: WebhookProvider;
  /** As the provider names it; '' when it does not. */
  event: string;
  /** By header, or the hash of the body when none names it. */
  deliveryId: string;
}

export function providerOf(header: ReadHeader): WebhookProvider {
  const found = Object.entries(dialects).find(([, { marks }]) => marks.some((name) => header(name) !== undefined));
  return (found?.[0] ?? 'generic') as WebhookProvider;
}

/** Cheap, to be asked before a body is read. */
export function isSigned(header: ReadHeader): boolean {
  return dialects[providerOf(header)].proofs.some((proof) => header(proof.header) !== undefined);
}

/** Undefined when the delivery is not signed with the secret. */
export async function verifyDelivery(
  header: ReadHeader,
  body: Uint8Array<ArrayBuffer>,
  secret: string,
): Promise<SignedDelivery | undefined> {
  const provider = providerOf(header);
  const { proofs, event, delivery } = dialects[provider];
  const proof = proofs.find(({ header: name }) => header(name) !== undefined);
  if (proof === undefined || !(await holds(proof, header, body, secret))) return undefined;
  const named = first(header, delivery);
  return {
    provider,
    event: first(header, event) ?? '',
    deliveryId: named !== undefined && /^[\x21-\x7e]{1,200}$/.test(named) ? named : `sha256:${(await sha256(body)).toHex()}`,
  };
}

async function holds(proof: Proof, header: ReadHeader, body: Uint8Array<ArrayBuffer>, secret: string): Promise<boolean> {
  const given = header(proof.header) ?? '';
  const encoder = new TextEncoder();
  switch (proof.kind) {
    case 'hex':
      return hmacHolds(encoder.encode(secret), fromHex(given), body);
    case 'prefixed-hex':
      return hmacHolds(encoder.encode(secret), fromHex(/^sha256=(.*)$/.exec(given)?.[1] ?? ''), body);
    case 'token':
      return sameText(given, secret);
    case 'standard': {
      const head = encoder.encode(`${header('webhook-id') ?? ''}.${header('webhook-timestamp') ?? ''}.`);
      const signed = new Uint8Array(head.length + body.length);
      signed.set(head);
      signed.set(body, head.length);
      const key = fromBase64(/^whsec_(.*)$/.exec(secret)?.[1] ?? '') ?? encoder.encode(secret);
      for (const each of given.split(' ')) {
        if (await hmacHolds(key, fromBase64(/^v1,(.*)$/.exec(each)?.[1] ?? ''), signed)) return true;
      }
      return false;
    }
  }
}

/** WebCrypto compares in constant time. */
async function hmacHolds(
  key: Uint8Array<ArrayBuffer>,
  signature: Uint8Array<ArrayBuffer> | undefined,
  message: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  if (signature?.length !== 32) return false;
  const imported = await crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify']);
  return crypto.subtle.verify('HMAC', imported, signature, message);
}

/** In a time that tells nothing of either. */
async function sameText(one: string, other: string): Promise<boolean> {
  const [a, b] = await Promise.all([one, other].map((text) => sha256(new TextEncoder().encode(text))));
  if (a === undefined || b === undefined) return false;
  let difference = 0;
  for (const [index, byte] of a.entries()) difference |= byte ^ (b[index] ?? 0);
  return difference === 0;
}

function first(header: ReadHeader, names: readonly string[]): string | undefined {
  for (const name of names) if (header(name) !== undefined) return header(name);
  return undefined;
}

function fromHex(text: string): Uint8Array<ArrayBuffer> | undefined {
  return /^[0-9a-f]{64}$/i.test(text) ? Uint8Array.fromHex(text) : undefined;
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return text === '' ? undefined : Uint8Array.fromBase64(text);
  } catch {
    return undefined;
  }
}

async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
}
