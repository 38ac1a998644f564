import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { verifyDelivery } from '#shared/core/webhooks/webhook-signature.ts';

const secret = 'a secret that the git host knows';
const body = new TextEncoder().encode('{"ref":"refs/heads/main"}');

function hex(of = secret): string {
  return createHmac('sha256', of).update(body).digest('hex');
}

function verify(headers: Record<string, string>, by = secret) {
  return verifyDelivery((name) => headers[name], body, by);
}

/** What each git host sends, as its documentation has it. */
const genuine: Record<string, Record<string, string>> = {
  github: {
    'x-github-event': 'push',
    'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
    'x-hub-signature': 'sha1=7d38cdd689735b008b3c702edd92eea23791c5f6',
    'x-hub-signature-256': `sha256=${hex()}`,
  },
  gitea: {
    'x-gitea-delivery': 'f6266f16-1bf3-46a5-9ea4-602e06ead473',
    'x-gitea-event': 'push',
    'x-gitea-signature': hex(),
    'x-github-delivery': 'f6266f16-1bf3-46a5-9ea4-602e06ead473',
    'x-github-event': 'push',
    'x-hub-signature-256': `sha256=${hex()}`,
  },
  forgejo: {
    'x-forgejo-delivery': 'a4c0b2a3-1bf3-46a5-9ea4-602e06ead473',
    'x-forgejo-event': 'push',
    'x-forgejo-signature': hex(),
    'x-gitea-delivery': 'a4c0b2a3-1bf3-46a5-9ea4-602e06ead473',
    'x-gitea-event': 'push',
    'x-gitea-signature': hex(),
  },
  gitlab: {
    'x-gitlab-event': 'Push Hook',
    'x-gitlab-event-uuid': '13792a34-cac6-4fda-95a8-c58e00a3954e',
    'idempotency-key': 'f5e57b8d-93c3-4d3b-8f1e-0b4f2ad3ee5f',
    'x-gitlab-token': secret,
  },
  generic: { 'x-hub-signature-256': `sha256=${hex()}` },
};

describe('a delivery signed with the secret', () => {
  it.each(Object.entries(genuine))('is taken from %s', async (provider, headers) => {
    expect((await verify(headers))?.provider).toBe(provider);
  });

  it('is named as the provider names it, by its body when it does not', async () => {
    const ids = await Promise.all(Object.values(genuine).map(async (headers) => (await verify(headers))?.deliveryId));
    expect(ids.slice(0, 4)).toEqual([
      '72d3162e-cc78-11e3-81ab-4c9367dc0958',
      'f6266f16-1bf3-46a5-9ea4-602e06ead473',
      'a4c0b2a3-1bf3-46a5-9ea4-602e06ead473',
      'f5e57b8d-93c3-4d3b-8f1e-0b4f2ad3ee5f',
    ]);
    expect(ids[4]).toMatch(/^sha256:[0-9a-f]{64}$/);
  });

  it("may be GitLab's signing token, over id, time and body", async () => {
    const key = Buffer.alloc(32, 7);
    const signed = Buffer.concat([Buffer.from('msg_1.1700000000.'), body]);
    const signature = createHmac('sha256', key).update(signed).digest('base64');
    const headers = { 'x-gitlab-event': 'Push Hook', 'webhook-id': 'msg_1', 'webhook-timestamp': '1700000000' };
    const token = `whsec_${key.toString('base64')}`;
    expect((await verify({ ...headers, 'webhook-signature': `v1,AAAA v1,${signature}` }, token))?.provider).toBe('gitlab');
    expect(await verify({ ...headers, 'webhook-id': 'msg_2', 'webhook-signature': `v1,${signature}` }, token)).toBeUndefined();
    expect(await verify({ ...headers, 'webhook-signature': `v1,${signature}` })).toBeUndefined();
  });
});

describe('a delivery that is not', () => {
  it.each(Object.entries(genuine))('is refused as from %s under another secret', async (_provider, headers) => {
    expect(await verify(headers, 'another secret of some length')).toBeUndefined();
  });

  it.each([
    ['no signature', { 'x-github-event': 'push' }],
    ['an empty one', { 'x-hub-signature-256': '' }],
    ['one without its prefix', { 'x-hub-signature-256': hex() }],
    ['one that is cut', { 'x-hub-signature-256': `sha256=${hex().slice(0, 62)}` }],
    ['one that is longer', { 'x-hub-signature-256': `sha256=${hex()}00` }],
    [
      'the old SHA-1',
      { 'x-github-event': 'push', 'x-hub-signature': `sha1=${createHmac('sha1', secret).update(body).digest('hex')}` },
    ],
    ['the secret itself where a signature belongs', { 'x-hub-signature-256': secret }],
    ['a token where GitHub signs', { 'x-github-event': 'push', 'x-gitlab-token': 'wrong' }],
    [
      'a bad own signature before a good other one',
      { 'x-gitea-signature': hex('wrong'), 'x-hub-signature-256': `sha256=${hex()}` },
    ],
  ])('is refused with %s', async (_what, headers) => {
    expect(await verify(headers)).toBeUndefined();
  });
});
