import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parse as parseToml } from 'smol-toml';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { type RegistrySettings, readRegistrySettings } from './registry-settings.ts';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'paas-registries-'));
});
afterEach(() => rm(root, { recursive: true, force: true }));

const files = {
  '/etc/npmrc': 'registry=https://machine:canary-1@npm.example.com/path/?key=canary-2\n//npm.example.com/:_authToken=canary-3\n',
  '/root/.npmrc':
    '@own:registry=https://own.example.com/\n_auth=canary-4\nproxy=http://me:canary-5@proxy.example.com:3128\nhttps-proxy=${PROXY}\nemail=me@example.com\n',
  '/etc/pip.conf':
    '[global]\nindex-url = https://pip:canary-6@pip.example.com/simple\nextra-index-url = https://one.example.com https://two:canary-7,x@two.example.com\n',
  '/root/.config/go/env': 'GOPROXY=https://go:canary-8@go.example.com|https://proxy.golang.org,direct\nGOFLAGS=-canary-9\n',
};
const env = {
  HOME: '/root',
  HTTPS_PROXY: 'operator:canary-10@proxy.example.com:3128',
  NPM_TOKEN: 'canary-11',
  PIP_DEFAULT_TIMEOUT: '180',
  BUNDLE_MIRROR__ALL: 'https://gems:canary-12@gems.example.com/',
  HEX_MIRROR: 'https://hex.example.com',
};

async function read(shareCredentials: boolean): Promise<RegistrySettings> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(`${root}${path}`), { recursive: true });
    await writeFile(`${root}${path}`, text);
  }
  return readRegistrySettings({ env, shareCredentials, root });
}

describe("the operator's settings of registries", () => {
  it('reach builds as addresses, without any credential', async () => {
    const settings = await read(false);
    expect(JSON.stringify(settings)).not.toContain('canary');
    expect(settings.homeFiles['.npmrc']?.split('\n')).toEqual([
      'registry=https://npm.example.com/path/',
      '@own:registry=https://own.example.com/',
      'proxy=http://proxy.example.com:3128',
      '',
    ]);
    expect(settings.env).toEqual({
      PIP_INDEX_URL: 'https://pip.example.com/simple',
      PIP_EXTRA_INDEX_URL: 'https://one.example.com https://two.example.com',
      GOPROXY: 'https://go.example.com|https://proxy.golang.org,direct',
      HTTPS_PROXY: 'proxy.example.com:3128',
      PIP_DEFAULT_TIMEOUT: '180',
      BUNDLE_MIRROR__ALL: 'https://gems.example.com/',
      HEX_MIRROR: 'https://hex.example.com',
      PDM_PYPI_URL: 'https://pip.example.com/simple',
      PIPENV_PYPI_MIRROR: 'https://pip.example.com/simple',
    });
    expect(parseYaml(settings.homeFiles['.yarnrc.yml'] ?? '')).toEqual({
      npmRegistryServer: 'https://npm.example.com/path/',
      httpProxy: 'http://proxy.example.com:3128',
      npmScopes: { own: { npmRegistryServer: 'https://own.example.com/' } },
    });
    expect(parseToml(settings.homeFiles['.config/uv/uv.toml'] ?? '')).toEqual({
      index: [
        { url: 'https://one.example.com' },
        { url: 'https://two.example.com' },
        { url: 'https://pip.example.com/simple', default: true },
      ],
    });
    expect(settings.pythonIndex).toBe('https://pip.example.com/simple');
  });

  it('reach builds with credentials only where the operator shares them, and then no others than those of registries', async () => {
    const settings = await read(true);
    const seen = JSON.stringify(settings);
    for (const shared of [1, 2, 3, 5, 6, 7, 8, 10]) expect(seen).toMatch(new RegExp(`canary-${shared}\\b`));
    for (const other of [4, 9, 11]) expect(seen).not.toMatch(new RegExp(`canary-${other}\\b`));
  });

  it.each<[string, Record<string, string>, string[], string[]]>([
    [
      'its variable',
      { UV_DEFAULT_INDEX: 'https://uv:canary@uv.example.com/simple?canary' },
      [],
      ['https://uv.example.com/simple'],
    ],
    [
      'its named variables',
      { UV_DEFAULT_INDEX: 'main=https://uv.example.com', UV_INDEX: 'own=https://u:canary@own.example.com' },
      [],
      ['https://own.example.com', 'https://uv.example.com'],
    ],
    [
      'its file',
      {},
      ['[[index]]\nurl = "https://u:canary@file.example.com"\ndefault = true\n[[index]]\nurl = "https://b.example.com"\n'],
      ['https://b.example.com', 'https://file.example.com'],
    ],
    [
      'the file of the operator before that of the machine',
      {},
      ['index-url = "https://a.example.com"', 'index-url = "https://b.example.com"'],
      ['https://b.example.com'],
    ],
    ['none of a file that is not valid', {}, ['[['], []],
  ])('reach uv from %s', async (_, variables, [machine, own], indexes) => {
    for (const [path, text] of [
      ['/etc/uv/uv.toml', machine],
      ['/root/.config/uv/uv.toml', own],
    ] as const) {
      await mkdir(dirname(`${root}${path}`), { recursive: true });
      await writeFile(`${root}${path}`, text ?? '');
    }
    const settings = await readRegistrySettings({ env: { HOME: '/root', ...variables }, shareCredentials: false, root });
    expect(JSON.stringify(settings)).not.toContain('canary');
    const file = parseToml(settings.homeFiles['.config/uv/uv.toml'] ?? '') as { index?: { url: string }[] };
    expect((file.index ?? []).map(({ url }) => url)).toEqual(indexes);
  });

  it('add no files where there are none', async () => {
    const settings = await readRegistrySettings({ env: {}, shareCredentials: false, root });
    expect(settings).toEqual({ env: {}, homeFiles: {}, pythonIndex: undefined, mounts: [] });
  });
});
