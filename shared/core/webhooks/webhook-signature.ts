/** Which git host sent a delivery, and whether it knows the secret. Headers are asked for by lower-case name. */
export type ReadHeader = (name: string) => string | undefined;

export type WebhookProvider = 'github' | 'gitea' | 'forgejo' | 'gogs' | 'gitlab' | 'generic';

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
const gogsSignature: Proof = { header: 'x-gogs-signature', kind: 'hex' };
const standardSignature: Proof = { header: 'webhook-signature', kind: 'standard' };

/** Gitea and Forgejo also send the headers of the hosts they are compatible with, so they come first. */
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
    proofs: [giteaSignature, gogsSignature, hubSignature],
  },
  gogs: {
    marks: ['x-gogs-event', 'x-gogs-delivery', 'x-gogs-signature'],
    event: ['x-gogs-event'],
    delivery: ['x-gogs-delivery'],
    proofs: [gogsSignature, hubSignature],
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

function providerOf(header: ReadHeader): WebhookProvider {
  const found = Object.entries(dialects).find(([, { marks }]) => marks.some((name) => header(name) !== undefined));
  return (found?.[0] ?? 'generic') as WebhookProvider;
}

/**
 * What the headers alone show, checked before a body is read: that there is no signature, that it is none of the
 * secret's whatever the body is, or that it may be right.
 */
export async function judgeHeaders(header: ReadHeader, secret: string): Promise<'unsigned' | 'wrong' | 'possible'> {
  const proof = proofOf(header);
  if (proof === undefined) return 'unsigned';
  if (proof.kind === 'token') return (await sameText(header(proof.header) ?? '', secret)) ? 'possible' : 'wrong';
  return readSignatures(proof, header).length > 0 ? 'possible' : 'wrong';
}

function proofOf(header: ReadHeader): Proof | undefined {
  return dialects[providerOf(header)].proofs.find((proof) => header(proof.header) !== undefined);
}

/** Undefined when the delivery is not signed with the secret. */
export async function verifyDelivery(
  header: ReadHeader,
  body: Uint8Array<ArrayBuffer>,
  secret: string,
): Promise<SignedDelivery | undefined> {
  const provider = providerOf(header);
  const { event, delivery } = dialects[provider];
  const proof = proofOf(header);
  if (proof === undefined || !(await holds(proof, header, body, secret))) return undefined;
  const named = first(header, delivery);
  return {
    provider,
    event: first(header, event) ?? '',
    deliveryId: named !== undefined && /^[\x21-\x7e]{1,200}$/.test(named) ? named : `sha256:${(await sha256(body)).toHex()}`,
  };
}

async function holds(proof: Proof, header: ReadHeader, body: Uint8Array<ArrayBuffer>, secret: string): Promise<boolean> {
  const encoder = new TextEncoder();
  if (proof.kind === 'token') return sameText(header(proof.header) ?? '', secret);
  const signatures = readSignatures(proof, header);
  if (proof.kind !== 'standard') {
    const key = encoder.encode(secret);
    if (await hmacHolds(key, signatures, body)) return true;
    const payload = formPayload(header, body);
    return payload !== undefined && hmacHolds(key, signatures, payload);
  }
  const head = encoder.encode(`${header('webhook-id') ?? ''}.${header('webhook-timestamp') ?? ''}.`);
  const signed = new Uint8Array(head.length + body.length);
  signed.set(head);
  signed.set(body, head.length);
  return hmacHolds(fromBase64(/^whsec_(.*)$/.exec(secret)?.[1] ?? '') ?? encoder.encode(secret), signatures, signed);
}

/** The JSON in a form: what Gitea, Forgejo and Gogs sign where GitHub signs the whole form. */
function formPayload(header: ReadHeader, body: Uint8Array): Uint8Array<ArrayBuffer> | undefined {
  if (header('content-type')?.toLowerCase().startsWith('application/x-www-form-urlencoded') !== true) return undefined;
  const payload = new URLSearchParams(new TextDecoder().decode(body)).get('payload');
  return payload === null ? undefined : new TextEncoder().encode(payload);
}

/** More than a secret that is being rotated needs: each costs a pass over the body. */
const mostSignatures = 3;

/** Those in the header that could be an HMAC-SHA256 at all. */
function readSignatures(proof: Proof, header: ReadHeader): Uint8Array<ArrayBuffer>[] {
  const given = header(proof.header) ?? '';
  const read = (): (Uint8Array<ArrayBuffer> | undefined)[] => {
    if (proof.kind === 'hex') return [fromHex(given)];
    if (proof.kind === 'prefixed-hex') return [fromHex(/^sha256=(.*)$/.exec(given)?.[1] ?? '')];
    return given.split(' ', mostSignatures).map((each) => fromBase64(/^v1,(.*)$/.exec(each)?.[1] ?? ''));
  };
  return read().filter((signature) => signature?.length === 32) as Uint8Array<ArrayBuffer>[];
}

/** One of the signatures is right. WebCrypto compares in constant time. */
async function hmacHolds(
  key: Uint8Array<ArrayBuffer>,
  signatures: readonly Uint8Array<ArrayBuffer>[],
  message: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  const imported = await crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify']);
  for (const signature of signatures) if (await crypto.subtle.verify('HMAC', imported, signature, message)) return true;
  return false;
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
