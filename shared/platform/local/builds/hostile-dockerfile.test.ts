/** What a hostile Dockerfile may do to the programs of the platform that build it. Real builds by buildah. */
import { existsSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type AppId, newUuid } from '#shared/ids.ts';
import { openRealBuilds, type RealBuilds } from '#test/support/builds/real-builds.ts';

vi.setConfig({ testTimeout: 240_000 });

const busybox = '/bin/busybox';
const missing = ['/usr/bin/buildah', busybox].filter((path) => !existsSync(path));

// Needs root, buildah and busybox-static.
describe.skipIf(missing.length > 0 || process.getuid?.() !== 0)('a hostile Dockerfile', () => {
  let real: RealBuilds;
  beforeAll(async () => {
    real = await openRealBuilds();
  });
  afterAll(() => real.stop());

  const program = missing.length > 0 ? new Uint8Array() : readFileSync(busybox);
  const base = 'FROM scratch\nCOPY busybox /bin/busybox\nRUN ["/bin/busybox", "sh", "-c", "/bin/busybox --install -s /bin"]\n';

  it('has code of the app run with the rights of the programs that build it by none of its variables', async () => {
    const spy = "console.error('SPY', require('node:fs').readFileSync('/proc/self/status', 'utf8'))";
    const built = await real.succeed(
      newUuid<AppId>(),
      { Dockerfile: `${base}ARG NODE_OPTIONS\nRUN echo "got $NODE_OPTIONS"\nCMD true\n`, busybox: program, 'spy.cjs': spy },
      { NODE_OPTIONS: '--require=/app/spy.cjs' },
    );
    expect(built.log).toContain('got --require=/app/spy.cjs');
    expect(built.log).not.toContain('SPY');
  });

  it('changes no configuration that these programs read, also by the id of a cache mount', async () => {
    // buildah 1.28 mounts what such an id leads to.
    const attempts = ['/home/app/.config/containers', '/etc/containers'].map(
      (place) =>
        `RUN --mount=type=cache,id=../../..${place},target=/c for name in storage.conf containers.conf auth.json; do [ ! -s /c/$name ] || ! echo '# owned' >> /c/$name || echo WROTE ${place}/$name; done; true\n`,
    );
    const built = await real.succeed(newUuid<AppId>(), {
      Dockerfile: `${base}${attempts.join('')}CMD true\n`,
      busybox: program,
    });
    expect(built.log.match(/^ *WROTE.*$/gm)).toBeNull();
  });
});
