import { seedCommit } from '#test/support/api/seed-commit.ts';
import { seedBuild, seedRelease, seedRun } from '#test/support/api/seeds.ts';
import { type TestApi, type TestUser, testPassword } from '#test/support/api/test-api.ts';

/** Values of path parameters, by name. */
export type PathValues = Readonly<Record<string, string>>;

/** One of everything that a path can name, in an app of `user`. */
export async function seedWorld(test: TestApi, user: TestUser): Promise<Record<string, string>> {
  const app = await test.createApp(user);
  const build = await seedBuild(test, user, app.id);
  const release = await seedRelease(test, user, app.id);
  const key = await test.ask('POST', '/v1/auth/ssh-keys', { as: user, json: { name: '', public_key: newPublicKey() } });
  const token = await test.ask('POST', '/v1/auth/tokens', { as: user, json: { name: 'ci', scope: 'read' } });
  const domain = await test.ask('POST', `/v1/apps/${app.id}/domains`, {
    as: user,
    json: { host: `${crypto.randomUUID()}.test` },
  });
  const addon = await test.ask('POST', `/v1/apps/${app.id}/addons`, { as: user, json: { type: 'kvstore' } });
  const email = `${crypto.randomUUID()}@example.com`;
  const invitation = await test.ask('POST', '/v1/tenant/invitations', { as: user, json: { email, role: 'viewer' } });
  const members = await test.ask('GET', '/v1/tenant/members', { as: user });
  // A session besides the one that is used.
  await test.ask('POST', '/v1/auth/login', { json: { email: user.email, password: testPassword } });
  const sessions = await test.ask('GET', '/v1/auth/sessions', { as: user });
  const run = await seedRun(test, user, app.id);
  await seedCommit(test, app.id, { 'README.md': 'Hello' });
  return {
    id: app.id,
    host: domain.body.data.host,
    bid: build.id,
    rid: release,
    revision: 'main',
    range: 'main...main',
    type: 'web',
    run,
    addon_type: addon.body.data.addon_type,
    key: key.body.data.id,
    token_id: token.body.data.id,
    session_id: sessions.body.data.find(({ current }) => !current)?.id ?? '',
    invitation: invitation.body.data.id,
    member: members.body.data.find((member) => member.user_id === user.id)?.id ?? '',
  };
}

/** An Ed25519 key in OpenSSH's form; nobody has its private half. */
function newPublicKey(): string {
  const text = (bytes: Uint8Array): number[] => [0, 0, 0, bytes.length, ...bytes];
  const blob = [...text(new TextEncoder().encode('ssh-ed25519')), ...text(crypto.getRandomValues(new Uint8Array(32)))];
  return `ssh-ed25519 ${Uint8Array.from(blob).toBase64()} test`;
}
