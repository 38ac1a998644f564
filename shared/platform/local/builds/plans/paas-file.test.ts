import { describe, expect, it } from 'vitest';
import { openPlanFixture } from '#test/support/builds/plan-fixture.ts';
import { adviseOnCompose } from './compose-advice.ts';
import { readAppOverrides } from './paas-file.ts';
import { readVersionPins } from './version-pins.ts';

const { openSource } = openPlanFixture();
const example = `
builder: node
install: npm ci
build:
  - npm run generate
  - npm run build
start: node server.js
release: npm run migrate
processes:
  worker: node worker.js
versions:
  node: 22
  python: 3.10
apt: [ffmpeg]
`;

describe('paas.yml', () => {
  it('says how the app is built and what runs', async () => {
    const source = await openSource({ 'paas.yml': example });
    const overrides = await readAppOverrides(source, {});
    expect(overrides).toMatchObject({
      builder: 'node',
      install: 'npm ci',
      build: 'npm run generate && npm run build',
      start: 'node server.js',
      versions: { node: '22', python: '3.10' },
      systemPackages: ['ffmpeg'],
    });
    expect(overrides.declared).toEqual({
      processes: { worker: 'node worker.js', web: 'node server.js' },
      releaseCommand: 'npm run migrate',
      from: 'paas.yml',
    });
    expect((await readVersionPins(source, {}, overrides)).get('python')).toEqual({ version: '3.10', source: 'paas.yml' });
  });

  it('comes before the files of other platforms and the Procfile, and after the variables of the app', async () => {
    const source = await openSource({
      'paas.yaml': 'build: make\nstart: ./own\n',
      'railpack.json': '{"provider": "go", "deploy": {"startCommand": "./other"}}',
      Procfile: 'web: ./procfile\nclock: ./clock\nrelease: ./migrate\n',
    });
    expect(await readAppOverrides(source, { RAILPACK_BUILD_CMD: 'make all' })).toMatchObject({
      builder: 'go',
      build: 'make all',
      start: './own',
      declared: {
        processes: { web: './own', clock: './clock' },
        releaseCommand: './migrate',
        from: 'Procfile and paas.yaml',
      },
    });
  });

  it('names the Dockerfile, unless the variable does', async () => {
    const source = await openSource({ 'paas.yml': 'dockerfile: deploy/Dockerfile\n' });
    expect((await readAppOverrides(source, {})).dockerfile).toBe('deploy/Dockerfile');
    expect((await readAppOverrides(source, { PAAS_DOCKERFILE: 'other' })).dockerfile).toBe('other');
  });

  it('changes nothing where it is missing or empty', async () => {
    for (const files of [{}, { 'paas.yml': '' }, { 'paas.yml': '# later\n' }]) {
      const source = await openSource(files);
      expect(await readAppOverrides(source, {})).toMatchObject({ packages: {}, versions: {}, systemPackages: [] });
      expect((await readAppOverrides(source, {})).declared).toBeUndefined();
    }
  });

  it.each([
    ['buidl: make', /^paas\.yml has an unknown key "buidl"\. Known keys: builder, dockerfile, install, build, start,/],
    ['directory: api', /^paas\.yml has the key "directory", which is a setting of the app: paas settings:set directory=PATH\.$/],
    ['health_path: /up', /^paas\.yml has the key "health_path", which is a setting of the app: paas settings:set health-path/],
    ['constructor: x', /unknown key "constructor"/],
    ['start: [a, b]', /^paas\.yml is not valid: "start": /],
    ['build: {}', /^paas\.yml is not valid: "build": must be a command or a list of commands/],
    ['apt: ffmpeg', /^paas\.yml is not valid: "apt": /],
    ['start: ""', /^paas\.yml is not valid: "start": must not be empty/],
    [
      'processes:\n  "web worker": x',
      /^paas\.yml declares the process type "web worker"\. The name of a type has letters, digits, - and _ only\.$/,
    ],
    [`start: ${'a'.repeat(20_000)}`, /^paas\.yml: "web" has a command of more than 16384 characters/],
    ['- a', /^paas\.yml must have keys with values/],
    ['start: "x', /^paas\.yml is not valid: .+ at line \d/],
    [`a: &a [x, x]\nb: &b [${'*a,'.repeat(200)}*a]\nc: [${'*b,'.repeat(200)}*b]\n`, /^paas\.yml /],
  ])('is refused with its fault: %s', async (text, message) => {
    const source = await openSource({ 'paas.yml': text });
    await expect(readAppOverrides(source, {})).rejects.toThrow(message);
  });
});

describe('a compose file', () => {
  it('is mapped to process types, add-ons and other apps', async () => {
    const compose = `
services:
  web: { build: . }
  worker: { build: ., command: node worker.js }
  db: { image: "postgres:17-alpine" }
  cache: { image: docker.io/valkey/valkey }
  search: { image: "getmeili/meilisearch:v1" }
`;
    expect(await adviseOnCompose(await openSource({ 'docker-compose.yml': compose }))).toEqual([
      'docker-compose.yml is not used: an app has one image. Its services here:',
      '  web -> a process type: a line in the Procfile, such as web: COMMAND',
      '  worker -> a process type: a line in the Procfile, such as worker: COMMAND',
      '  db (postgres) -> paas addons:create database',
      '  cache (valkey) -> paas addons:create kvstore',
      '  search (meilisearch) -> an app of its own: paas create NAME, then paas builds:create -a NAME --image getmeili/meilisearch:v1',
    ]);
  });

  it.each([{}, { 'compose.yaml': 'services: 7' }, { 'compose.yaml': '{' }, { 'compose.yaml': 'services: {web: }' }])(
    'that says nothing is no fault: %j',
    async (files) => {
      expect((await adviseOnCompose(await openSource(files))).length).toBeLessThanOrEqual(2);
    },
  );
});
