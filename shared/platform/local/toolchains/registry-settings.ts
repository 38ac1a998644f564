/**
 * How the operator's machine reaches the package registries (mirrors, proxies, certificates), carried over into builds. Builds see none
 * of the files themselves. Credentials are removed: tokens and passwords of their own, and those inside addresses. An operator who
 * trusts all tenants can share them.
 */
import { readFile, stat } from 'node:fs/promises';
import type { SandboxMount } from '../sandbox/sandbox.ts';
import { readUvIndexes, toolSettings, toUvSettings, toYarnSettings } from './registry-formats.ts';

export interface RegistrySettings {
  readonly env: Readonly<Record<string, string>>;
  /** Settings of tools in files of the build's own home, by path: '.npmrc'. Those in the app's source come before them. */
  readonly homeFiles: Readonly<Record<string, string>>;
  /** The index of Python packages instead of PyPI. */
  readonly pythonIndex: string | undefined;
  /** Certificates and package directories that the settings point to, outside what every sandbox shows. */
  readonly mounts: readonly SandboxMount[];
}

const variables = [
  'HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'ALL_PROXY', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'NODE_EXTRA_CA_CERTS', 'REQUESTS_CA_BUNDLE',
  'CURL_CA_BUNDLE', 'GIT_SSL_CAINFO', 'NPM_CONFIG_REGISTRY', 'NPM_CONFIG_CAFILE', 'NPM_CONFIG_STRICT_SSL', 'PIP_INDEX_URL', 'PIP_EXTRA_INDEX_URL',
  'PIP_FIND_LINKS', 'PIP_TRUSTED_HOST', 'PIP_CERT', 'PIP_DEFAULT_TIMEOUT', 'GOPROXY', 'GOSUMDB', 'GONOSUMDB', 'GONOSUMCHECK', 'GOINSECURE', 'GOTOOLCHAIN',
  'BUNDLE_MIRROR__ALL', 'BUNDLE_SSL_CA_CERT', 'HEX_MIRROR', 'HEX_BUILDS_URL', 'HEX_CACERTS_PATH',
]; // biome-ignore format: a list of words
const npmKeys =
  /^(@[^:]+:registry|registry|replace-registry-host|cafile|strict-ssl|proxy|https-proxy|noproxy|fetch-(retries|retry-\w+|timeout)|omit-lockfile-registry-resolved)$/;
const npmCredentials = /^\/\/.+:(_authToken|_auth|username|_password)$/;
const pipKeys = new Map(
  ['index-url', 'extra-index-url', 'find-links', 'trusted-host', 'cert', 'timeout'].map((key) => [
    key,
    `PIP_${(key === 'timeout' ? 'default-timeout' : key).toUpperCase().replaceAll('-', '_')}`,
  ]),
);

/** Where settings come from, and which part of them builds get. */
export interface RegistryOptions {
  /** The operator's environment: HOME is where their npm, pip and Go settings are. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether builds of all tenants get the credentials, too. */
  readonly shareCredentials: boolean;
  /** The root of the file system; another one in tests. */
  readonly root?: string;
}

/** Files of the machine and of the operator, later ones winning. A missing one is empty. */
export async function readRegistrySettings({ env, shareCredentials, root = '' }: RegistryOptions): Promise<RegistrySettings> {
  const read = async (...files: string[]): Promise<string> =>
    (await Promise.all(files.map((file) => readOptional(`${root}${file}`)))).join('\n');
  const home = env.HOME ?? '/nonexistent';
  const [npmrc, pip, go, uv] = await Promise.all([
    read('/usr/etc/npmrc', '/usr/local/etc/npmrc', '/etc/npmrc', `${home}/.npmrc`),
    read('/etc/pip.conf', `${home}/.pip/pip.conf`, `${home}/.config/pip/pip.conf`),
    read(`${home}/.config/go/env`),
    Promise.all(['/etc/uv/uv.toml', `${home}/.config/uv/uv.toml`].map((file) => readOptional(`${root}${file}`))),
  ]);
  const usable = (pairs: readonly (readonly [string, string])[]): Record<string, string> => select(pairs, shareCredentials);
  const merged = {
    ...usable(assignments(pip).map(([key, value]) => [pipKeys.get(key) ?? '', value])),
    ...usable(assignments(go).filter(([key]) => key.startsWith('GO') && variables.includes(key))),
    ...usable(variables.flatMap((name) => [name, name.toLowerCase()]).map((name) => [name, env[name] ?? ''])),
  };
  const npmSettings = usable(
    assignments(npmrc).filter(([key]) => npmKeys.test(key) || (shareCredentials && npmCredentials.test(key))),
  );
  const clean = (address: string): string => (shareCredentials ? address : withoutCredentials(address));
  const indexes = readUvIndexes(uv, env, merged);
  const [pythonIndex, ...furtherIndexes] = [indexes.main ?? '', ...indexes.further].map(clean);
  const npmFile = Object.entries(npmSettings).map(([key, value]) => `${key}=${value}\n`);
  const files = {
    '.npmrc': npmFile.join(''),
    '.yarnrc.yml': toYarnSettings(npmSettings),
    '.config/uv/uv.toml': toUvSettings(pythonIndex, furtherIndexes, merged['PIP_TRUSTED_HOST']),
  };
  const paths = [...Object.values(merged).flatMap((value) => value.split(/[\s,:]+/)), npmSettings.cafile ?? ''];
  return {
    env: { ...merged, ...toolSettings(pythonIndex) },
    homeFiles: Object.fromEntries(Object.entries(files).filter(([, text]) => text !== '')),
    pythonIndex: pythonIndex === '' ? undefined : pythonIndex,
    mounts: await existing(paths.filter((path) => path.startsWith('/') && !/^\/(usr|etc\/ssl\/certs)(\/|$)/.test(path))),
  };
}

function assignments(text: string): (readonly [string, string])[] {
  return text.split('\n').flatMap((line) => {
    const [, key, value] = /^\s*([^#;=[\s]+)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    return key === undefined || value === undefined ? [] : [[key, value] as const];
  });
}

/** Without unset ones and references to variables of the operator's. */
function select(pairs: readonly (readonly [string, string])[], shareCredentials: boolean): Record<string, string> {
  const known = pairs.filter(([name, value]) => name !== '' && !value.includes('${'));
  const shared = known.map(([name, value]) => [name, shareCredentials ? value : withoutCredentials(value)] as const);
  return Object.fromEntries(shared.filter(([, value]) => value !== ''));
}

/**
 * Addresses without user, password, query and fragment, also several in one value and those of proxies without a scheme. Empty if
 * something that looks like a password remains.
 */
function withoutCredentials(value: string): string {
  const cleaned = value
    .replace(/:\/\/[^/\s]*@/g, '://')
    .split(/([\s,|]+)/)
    .map((word) => word.replace(/^[^/]*@/, '').replace(/(:\/\/[^?#]*)[?#].*$/, '$1'))
    .join('');
  return cleaned.includes('@') ? '' : cleaned;
}

async function readOptional(file: string): Promise<string> {
  return readFile(file, 'utf8').catch(() => '');
}

async function existing(paths: readonly string[]): Promise<readonly SandboxMount[]> {
  const found = await Promise.all(
    [...new Set(paths)].map(async (path) => ((await stat(path).catch(() => undefined)) === undefined ? [] : [path])),
  );
  return found.flat().map((path) => ({ source: path, target: path }));
}
