import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createPerson, type Person } from '#cli/testing/person.ts';
import { issueAuthority, issueLeaf } from '#shared/tls/issue-certificate.ts';
import { permittedNames } from '#shared/tls/permitted-names.ts';
import { nodeApp } from '#test/support/builds/sample-apps.ts';
import { type RunningPlatform, removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { createUser, type User, visit } from '#test/support/platform/user.ts';
import { runChecked } from '#test/support/run-program.ts';
import { type FileServer, startFileServer } from '#test/support/servers/file-server.ts';

interface BuildAnswer {
  id: string;
  status: string;
  error: string | null;
  commit: string | null;
  source_url: string | null;
  source_sha256: string | null;
}

/** In order: each test goes on where the one before ended. */
describe('an archive on a server elsewhere', () => {
  let directory: string;
  let server: FileServer;
  let env: Record<string, string>;
  let platform: RunningPlatform;
  let user: User;
  let person: Person;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'paas-archive-'));
    const authority = await issueAuthority(permittedNames(['localhost']), 1, new Date());
    const caFile = join(directory, 'ca.pem');
    await writeFile(caFile, authority.certificate);
    server = await startFileServer(await issueLeaf(authority, ['127.0.0.1'], 1, new Date()));
    env = { PAAS_ALLOW_PRIVATE_SOURCES: 'true', NODE_EXTRA_CA_CERTS: caFile };
    platform = await startPlatform({ env });
    user = await createUser(platform);
    person = await createPerson();
    await user.createApp('packed');
  });
  afterAll(async () => {
    await person?.remove();
    await user?.remove();
    await removePlatform(platform);
    await server?.close();
    await rm(directory, { recursive: true, force: true });
  });

  /** Packs an app as people do, and serves it; resolves with the checksum. */
  async function serve(name: string, word: string): Promise<string> {
    const app = join(directory, name);
    await mkdir(app);
    for (const [path, content] of Object.entries(nodeApp(word))) await writeFile(join(app, path), content);
    await runChecked('tar', ['-czf', `${app}.tar.gz`, '-C', directory, name]);
    const packed = await readFile(`${app}.tar.gz`);
    server.files.set(`/${name}.tar.gz`, packed);
    return createHash('sha256').update(packed).digest('hex');
  }

  const latest = () => user.api<BuildAnswer>('GET', '/v1/apps/packed/builds/latest');
  const served = async () => (await visit(platform, 'packed')).body;
  const paas = (...args: string[]) =>
    person.paas(args, { cwd: person.home, env: { PAAS_API_URL: platform.baseUrl, PAAS_TOKEN: user.token } });

  it('is built and served by one command, and listed by the others', async () => {
    const sha256 = await serve('one', 'one');
    const address = `${server.url}/one.tar.gz`;
    const made = await paas(
      ...['builds:create', '-a', 'packed', '--source-url', `${address}?signature=secret`, '--source-sha256', sha256],
    );
    expect(made.stderr + made.stdout).toContain(`-----> Fetching ${address}\n`);
    expect(made.code).toBe(0);
    expect(await served()).toBe('one');
    expect(await latest()).toMatchObject({ status: 'succeeded', commit: null, source_url: address, source_sha256: sha256 });
    const outputs = [made, await paas('builds', '-a', 'packed'), await paas('releases', '-a', 'packed')];
    for (const { stdout, stderr } of outputs) expect(stdout + stderr).toContain('one.tar.gz');
    for (const { stdout, stderr } of outputs) expect(stdout + stderr).not.toContain('secret');
  });

  it('with a wrong checksum is not served', async () => {
    await serve('other', 'other');
    const made = await paas(
      ...['builds:create', '-a', 'packed', '--source-url', `${server.url}/other.tar.gz`, '--source-sha256', 'a'.repeat(64)],
    );
    expect(made.code).toBe(1);
    expect(made.stderr).toContain('has the wrong checksum');
    expect(await served()).toBe('one');
  });

  it('is fetched again after the platform was killed while it fetched it', async () => {
    const sha256 = await serve('two', 'two');
    const release = server.hold();
    const asked = server.requests.length;
    await user.api('POST', '/v1/apps/packed/builds', { source_url: `${server.url}/two.tar.gz` });
    await expect.poll(() => server.requests.length, { timeout: 20_000 }).toBe(asked + 1);
    await platform.kill();
    release();
    const { dataDir, httpPort, httpsPort, sshPort } = platform;
    expect(await readdir(join(dataDir, 'sources'))).toEqual([]);
    platform = await startPlatform({ dataDir, ports: { http: httpPort, https: httpsPort, ssh: sshPort }, env });
    await expect.poll(served, { timeout: 60_000 }).toBe('two');
    expect(await latest()).toMatchObject({ status: 'succeeded', source_sha256: sha256 });
  });
});
