/** Real builds by buildah, from nothing but a static busybox, and the images answering. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type AppId, newUuid } from '#shared/ids.ts';
import { openRealBuilds, type RealBuilds } from '#test/support/builds/real-builds.ts';

vi.setConfig({ testTimeout: 240_000 });

const busybox = '/bin/busybox';
const missing = ['/usr/bin/buildah', busybox].filter((path) => !existsSync(path));

// Needs root, buildah and busybox-static.
describe.skipIf(missing.length > 0 || process.getuid?.() !== 0)('an app with a Dockerfile', () => {
  let real: RealBuilds;
  beforeAll(async () => {
    real = await openRealBuilds();
  });
  afterAll(() => real.stop());

  const program = missing.length > 0 ? new Uint8Array() : readFileSync(busybox);
  const base =
    'FROM scratch AS base\nCOPY busybox /bin/busybox\nRUN ["/bin/busybox", "sh", "-c", "/bin/busybox --install -s /bin"]\n';

  it('is built in stages and answers as its own user; what did not change is not built again', async () => {
    const appId = newUuid<AppId>();
    const stages = `${base}FROM base AS build
ARG TOKEN
COPY . /src
RUN --mount=type=cache,target=/kept echo x >> /kept/runs; wc -l < /kept/runs > /count; echo \${#TOKEN} > /length; test ! -e /src/ignored
FROM base
COPY --from=build /count /length /www/
COPY --chown=1000 index.html /www/
WORKDIR /www
USER 1000:1000
CMD id -u > id; exec httpd -f -p $PORT
`;
    const sources = { Dockerfile: stages, '.dockerignore': 'ignored\n', ignored: 'x', 'index.html': 'one', busybox: program };
    const cold = await real.succeed(appId, sources, { TOKEN: 'canary-91ce' });
    expect(cold.log).toContain('-----> Dockerfile detected (Dockerfile)');
    expect(cold.processes).toEqual({ web: "/bin/sh -c 'id -u > id; exec httpd -f -p $PORT'" });
    expect(await (await real.visit(appId, cold.imageUrl)).text()).toBe('one');
    expect(await (await real.visit(appId, cold.imageUrl, '/length')).text()).toBe('11\n');
    expect(cold.log).not.toContain('canary-91ce');

    const warm = await real.succeed(appId, { ...sources, 'index.html': 'two' }, { TOKEN: 'canary-91ce' });
    expect(warm.log.match(/Using cache/g)?.length).toBeGreaterThanOrEqual(2);
    expect(await (await real.visit(appId, warm.imageUrl)).text()).toBe('two');
    // The cache of RUN --mount=type=cache is that of the app.
    expect(await (await real.visit(appId, warm.imageUrl, '/count')).text()).toBe('2\n');
  });

  it('without a shell in its image runs its program', async () => {
    const appId = newUuid<AppId>();
    const { imageUrl } = await real.succeed(appId, {
      Dockerfile:
        'FROM scratch\nCOPY busybox /httpd\nCOPY index.html /www/\nWORKDIR /www\nUSER 65534\nCMD ["/httpd", "httpd", "-f", "-p", "18431"]\n',
      ...{ 'index.html': 'scratch', busybox: program },
    });
    const image = await real.images.readImage(imageUrl);
    expect(image.container).toMatchObject({ uid: 65534, workdir: '/www' });
    expect(image.processes).toEqual({ web: '/httpd httpd -f -p 18431' });
  });

  it('may name a base image without its registry', async () => {
    const { outcome, log } = await real.build(newUuid<AppId>(), { Dockerfile: 'FROM busybox:1\nCMD ["/bin/true"]\n' });
    // Docker Hub may be out of reach of the tests.
    expect(log).toMatch(/docker\.io\/library\/busybox:1/);
    if (outcome.status === 'failed') expect(outcome.cause).toMatch(/could not be reached|does not exist|refused access/);
  });

  it('is told which instruction failed', async () => {
    const { outcome } = await real.build(newUuid<AppId>(), { Dockerfile: `${base}RUN exit 7\n`, busybox: program });
    expect(outcome).toMatchObject({ status: 'failed', cause: expect.stringMatching(/RUN exit 7.*exit code 7/) });
  });

  it('stores no setuid file, no device, and no file of a user outside of its own range', async () => {
    const appId = newUuid<AppId>();
    const { imageUrl } = await real.succeed(appId, {
      Dockerfile: `${base}RUN cp /bin/busybox /bin/own && chmod 4755 /bin/own && chmod 2777 /bin && mknod /dev/sda b 8 0; mkfifo /pipe; chown 1234:4321 /bin/own; true\nCMD ["/bin/own"]\n`,
      busybox: program,
    });
    const { root, container } = await real.images.readImage(imageUrl);
    const entries = await readdir(root, { recursive: true, withFileTypes: true });
    expect(entries.filter((entry) => !entry.isFile() && !entry.isDirectory() && !entry.isSymbolicLink())).toEqual([]);
    for (const entry of entries.filter((found) => !found.isSymbolicLink()))
      expect((await stat(join(entry.parentPath, entry.name))).mode & 0o6000).toBe(0);
    expect(statSync(join(root, 'bin/own'))).toMatchObject({
      uid: (container?.users.first ?? 0) + 1234,
      gid: (container?.users.first ?? 0) + 4321,
    });
  });

  it('with links in place of the directories that a container needs reaches nothing of the host', async () => {
    const before = statSync('/etc/hosts');
    const appId = newUuid<AppId>();
    for (const target of ['/oldroot/etc', '/proc/1/root/etc']) {
      const { imageUrl } = await real.succeed(appId, {
        Dockerfile: `${base}COPY etc /etc\nCMD exec httpd -f -p $PORT\n`.replace(
          'COPY etc /etc',
          `RUN rm -rf /etc; ln -s ${target} /etc`,
        ),
        busybox: program,
      });
      await real.visit(appId, imageUrl).catch(() => undefined);
    }
    const after = statSync('/etc/hosts');
    expect([after.ino, after.mtimeMs, after.ctimeMs]).toEqual([before.ino, before.mtimeMs, before.ctimeMs]);
  });
});
