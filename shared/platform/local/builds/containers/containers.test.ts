import { describe, expect, it } from 'vitest';
import { chooseBuildArguments } from '#shared/platform/build-arguments.ts';
import { planCredentials } from '../container-build.ts';
import type { SourceTree } from '../plans/source-tree.ts';
import { planImageBuild } from './buildah.ts';
import { explainContainerFailure } from './container-causes.ts';
import { findDockerfile } from './dockerfile.ts';
import { findContainerProblem } from './find-buildah.ts';
import { readImageConfig } from './image-config.ts';
import { planContainersConfig } from './registries-conf.ts';

const sourceWith = (...files: string[]): SourceTree => ({
  hasFile: async (path) => files.includes(path),
  readText: async () => undefined,
  readBytes: async () => undefined,
  list: async () => files,
});

describe('a Dockerfile', () => {
  it.each([
    [['Dockerfile', 'package.json'], undefined, undefined, 'Dockerfile'],
    [['Containerfile'], undefined, undefined, 'Containerfile'],
    [['package.json'], undefined, undefined, undefined],
    [['Dockerfile', 'railpack.json'], undefined, undefined, undefined],
    [['Dockerfile', 'railpack.json'], 'dockerfile', undefined, 'Dockerfile'],
    [['Dockerfile'], 'node', undefined, undefined],
    [['package.json'], undefined, 'deploy/app.Dockerfile', 'deploy/app.Dockerfile'],
  ] as const)('comes before detection unless the app says otherwise: %j %s %s', async (files, named, variable, path) => {
    expect(await findDockerfile(sourceWith(...files), named, variable)).toBe(path);
  });

  it('gets the variables of the app that its ARG instructions name, but none that changes the programs that build it', () => {
    const text = 'ARG NODE=22\nFROM node:$NODE\narg A B="x y" C \\\n  D=1\nARG LD_PRELOAD\nARG PATH\nENV SECRET=1\n# ARG E\n';
    const env = { NODE: '20', A: '1', B: '2', D: '3', LD_PRELOAD: '/evil.so', PATH: '/evil', SECRET: 's', E: 'e' };
    expect(chooseBuildArguments(text, env)).toEqual({ NODE: '20', A: '1', B: '2', D: '3' });
    const ofGit = { GIT_SSH_COMMAND: '/evil', GIT_CONFIG_COUNT: '1', GIT_COMMIT: 'abc', GIT_DIR: '/evil', GIT_DIRECTORY: 'x' };
    const asked = Object.keys(ofGit).join(' ');
    expect(chooseBuildArguments(`ARG ${asked}`, ofGit)).toEqual({ GIT_COMMIT: 'abc', GIT_DIRECTORY: 'x' });
  });

  it('gets their values by the environment, not in arguments that others could see', () => {
    const { argv, env } = planImageBuild('Dockerfile', { TOKEN: 'canary-2f' }, {});
    expect(argv.join(' ')).toContain('--build-arg TOKEN');
    expect(argv.join(' ')).not.toContain('canary-2f');
    expect(Object.values(env)).toContain('canary-2f');
    // Any other program of the build would obey a variable such as NODE_OPTIONS.
    expect(env).not.toHaveProperty('TOKEN');
  });

  it('gets credentials of registries, but no programs that know them', () => {
    const auths = { 'registry.example': { auth: 'YTpi', email: 'a@b' }, 'other.example': {} };
    const helpers = { credHelpers: { 'registry.example': 'x/../../app/evil' } };
    expect(JSON.parse(planCredentials(JSON.stringify({ auths, ...helpers })))).toEqual({
      auths: { 'registry.example': { auth: 'YTpi' } },
    });
    expect(() => planCredentials(JSON.stringify(helpers))).toThrow('names programs that know the credentials');
    expect(() => planCredentials('no')).toThrow('is not valid JSON');
    expect(() => planCredentials('{"auths": []}')).toThrow('is not supported');
  });
});

const inspected = (config: object): string => JSON.stringify({ Docker: { config } });
const files = {
  passwd: 'root:x:0:0:root:/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n',
  group: 'root:x:0:\nstaff:x:50:\n',
};

describe('the configuration of an image', () => {
  it('becomes a command line, variables, user, directory, ports and signal', () => {
    const config = {
      ...{ User: 'node', Env: ['A=b=c'], Entrypoint: ['/entry point'], Cmd: ['-p', '$PORT'], WorkingDir: '/srv' },
      ...{ ExposedPorts: { '80/tcp': {}, '53/udp': {} }, StopSignal: 'QUIT' },
    };
    expect(readImageConfig(inspected(config), files)).toEqual({
      container: { uid: 1000, gid: 1000, home: '/home/node', workdir: '/srv', ports: [80], stopSignal: 'SIGQUIT' },
      env: { PATH: expect.stringContaining('/usr/local/bin'), A: 'b=c' },
      command: `'/entry point' -p '$PORT'`,
      notes: [],
    });
  });

  it('has defaults for everything', () => {
    expect(readImageConfig(inspected({}), { passwd: '', group: '' })).toMatchObject({
      container: { uid: 0, gid: 0, home: '/', workdir: '/', ports: [] },
      command: undefined,
    });
  });

  it.each([
    ['1234', { uid: 1234, gid: 0, home: '/' }],
    ['1000', { uid: 1000, gid: 1000, home: '/home/node' }],
    ['node:staff', { uid: 1000, gid: 50 }],
    ['1:7', { uid: 1, gid: 7 }],
  ])('resolves USER %s by the files of the image', (User, container) => {
    expect(readImageConfig(inspected({ User }), files)).toMatchObject({ container });
  });

  it.each(['nobody', 'node:wheel', '70000', '-1'])('is refused for USER %s, which the image does not have', (User) => {
    expect(() => readImageConfig(inspected({ User }), files)).toThrow(`USER ${User}: the image has no such`);
  });

  it.each([{ Env: ['A=x\0--cap-add\0ALL'] }, { User: '0\0' }, { WorkingDir: '/\0' }, { Cmd: ['x\0'] }])(
    'is refused with a NUL: %j',
    (config) => {
      expect(() => readImageConfig(inspected(config), files)).toThrow('contains a NUL character');
    },
  );

  it('names what is not used', () => {
    const { notes } = readImageConfig(inspected({ Healthcheck: { Test: ['CMD', 'true'] }, Volumes: { '/data': {} } }), files);
    expect(notes).toEqual([expect.stringContaining('HEALTHCHECK is not used'), expect.stringContaining('VOLUME /data')]);
  });
});

describe('a failed Dockerfile', () => {
  it.each([
    [
      'Error: building at STEP "RUN npm ci": while running runtime: exit status 7',
      'The Dockerfile failed at `RUN npm ci` (exit code 7).',
    ],
    [
      'Error: creating build container: initializing source docker://127.0.0.1:5000/x:latest: pinging container registry 127.0.0.1:5000: Get "https://127.0.0.1:5000/v2/": dial tcp 127.0.0.1:5000: connect: connection refused',
      /^The registry 127\.0\.0\.1:5000 could not be reached/,
    ],
    [
      'Error: creating build container: initializing source docker://r.example/base:9: reading manifest 9 in r.example/base: manifest unknown: manifest unknown',
      'The image r.example/base:9 does not exist in its registry. Check its name and tag.',
    ],
    [
      'Error: initializing source docker://ghcr.io/a/b:1: reading manifest 1 in ghcr.io/a/b: unauthorized: authentication required',
      /^The registry refused access/,
    ],
  ])('ends in its cause: %s', (line, cause) => {
    const explained = explainContainerFailure(['RUN printed: Error: manifest unknown', line]);
    if (typeof cause === 'string') expect(explained).toBe(cause);
    else expect(explained).toMatch(cause);
  });

  it('is not explained by what RUN printed', () => {
    expect(explainContainerFailure(['access denied: unauthorized', 'exit'])).toBeUndefined();
  });
});

it('the operator sets mirrors, and registries without HTTPS', () => {
  const { 'registries.conf': text } = planContainersConfig({
    mirrors: { 'docker.io': 'mirror.internal:5000/hub' },
    insecure: ['mirror.internal:5000', 'plain.internal'],
  });
  expect(text).toContain(
    'location = "docker.io"\ninsecure = false\n[[registry.mirror]]\nlocation = "mirror.internal:5000/hub"\ninsecure = true\n',
  );
  expect(text).toContain('prefix = "plain.internal"\nlocation = "plain.internal"\ninsecure = true\n');
});

it('an ordinary user is told that container images need root', async () => {
  expect(await findContainerProblem(false)).toContain('runs as root');
});
