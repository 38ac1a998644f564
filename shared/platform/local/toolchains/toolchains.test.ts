import { describe, expect, it } from 'vitest';
import { findExecutable } from '#shared/files/find-executable.ts';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import type { ToolStore } from './tool-store.ts';
import { openToolchains } from './toolchains.ts';

const path = process.env['PATH'] ?? '';
const hasPython = (await findExecutable('python3', path)) !== undefined;
const hasRust = (await findExecutable('rustc', path)) !== undefined && (await findExecutable('cc', '/usr/bin')) !== undefined;

function toolchainsWith(store: ToolStore) {
  return openToolchains({ env: { PATH: path, HOME: process.env['HOME'] }, platformNodeVersion: '26.0.0', store });
}

const store: ToolStore = {
  listVersions: async (name, request) =>
    name === 'rust' ? (request === '1.2' ? ['1.2.3'] : []) : ['3.98.0', '3.99.0', '3.99.1'],
  ensureTool: async ({ name, version }) => `/tools/${name}/${version}`,
};

describe.skipIf(!hasPython)('a Python that the host does not have', () => {
  it('is one of the store', async () => {
    const python = await toolchainsWith(store).findPython([{ version: '3.99', source: '.python-version' }]);
    expect(python).toMatchObject({
      version: '3.99.1',
      executable: '/opt/paas/tools/python/3.99.1/bin/python3',
      mounts: [{ kind: 'stored', name: 'python', version: '3.99.1' }],
    });
  });

  it("comes from Debian's packages if it cannot be downloaded, also for the next build", async () => {
    const installed: string[] = [];
    const offline: ToolStore = {
      listVersions: async (name) => (name === 'python' ? ['3.99.1'] : name === 'debian-python' ? ['3.99.0+1.deb14u1'] : []),
      async ensureTool({ name, version }) {
        installed.push(name);
        if (name === 'python') throw new BuildFailure('python could not be downloaded: host could not be reached.');
        return `/tools/${name}/${version}`;
      },
    };
    const toolchains = toolchainsWith(offline);
    const python = await toolchains.findPython([{ version: '3.99', source: '.python-version' }]);
    expect(python).toEqual({
      version: '3.99.0',
      executable: '/usr/bin/python3.99',
      pip: false,
      path: [],
      mounts: [{ kind: 'stored', name: 'debian-python', version: '3.99.0+1.deb14u1' }],
    });
    await toolchains.findPython([{ version: '3.99', source: '.python-version' }]);
    expect(installed).toEqual(['python', 'debian-python', 'debian-python']);
  });

  it('is what all files of the app ask for', async () => {
    const requests = [
      { version: '>=3.98', source: 'pyproject.toml' },
      { version: '<3.99', source: 'Pipfile' },
    ];
    expect((await toolchainsWith(store).findPython(requests)).version).toBe('3.98.0');
  });

  it('fails the build with what the host has and why no other could be installed', async () => {
    const failing: ToolStore = {
      ...store,
      ensureTool: async () => {
        throw new BuildFailure('python 3.99.1 could not be downloaded: github.com could not be reached. Try again.');
      },
    };
    await expect(toolchainsWith(failing).findPython([{ version: '3.99', source: '.python-version' }])).rejects.toThrow(
      /^\.python-version asks for Python 3\.99, and this platform has 3\.\d.*\. python 3\.99\.1 could not be downloaded: github\.com could not be reached\. Ask for one of them, or let its operator install it: uv python install 3\.99$/,
    );
  });
});

describe.skipIf(!hasRust)('a Rust that the host does not have', () => {
  it('is one of the store', async () => {
    const rust = await toolchainsWith(store).findRust({ version: '1.2', source: 'rust-toolchain.toml' });
    expect(rust).toMatchObject({ version: '1.2.3', path: ['/opt/paas/tools/rust/1.2.3/bin'] });
  });

  it('fails the build with what the host has, if there is none', async () => {
    await expect(toolchainsWith(store).findRust({ version: '1.1', source: 'rust-toolchain.toml' })).rejects.toThrow(
      /^rust-toolchain\.toml asks for Rust 1\.1, and this platform has \d.*rustup toolchain install 1\.1$/,
    );
  });
});

it("a Java that the host does not have comes from Debian's packages", async () => {
  const offered: ToolStore = { ...store, listVersions: async (name) => (name === 'debian-java' ? ['99.0.1+9.deb13u1'] : []) };
  const java = await toolchainsWith(offered).findJava({ version: '99', source: 'system.properties' });
  expect(java.home).toMatch(/^\/usr\/lib\/jvm\/java-99-openjdk-(amd64|arm64)$/);
  expect(java).toMatchObject({ version: '99.0.1', mounts: [{ kind: 'stored', name: 'debian-java' }] });
});
