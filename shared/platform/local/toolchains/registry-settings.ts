/**
 * How the operator's machine reaches the package registries (mirrors, proxies, certificates), carried over into builds.
 * Only settings known to be harmless: never a token, and no address that has credentials in it.
 */
import { readFile, stat } from 'node:fs/promises';
import type { SandboxMount } from '../sandbox/sandbox.ts';

export interface RegistrySettings {
  readonly env: Readonly<Record<string, string>>;
  /** Text of the build's own ~/.npmrc. */
  readonly npmrc: string;
  /** Certificates and package directories that the settings point to, outside what every sandbox shows. */
  readonly mounts: readonly SandboxMount[];
}

const variables = [
  'HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'ALL_PROXY', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'NODE_EXTRA_CA_CERTS', 'REQUESTS_CA_BUNDLE',
  'CURL_CA_BUNDLE', 'GIT_SSL_CAINFO', 'NPM_CONFIG_REGISTRY', 'NPM_CONFIG_CAFILE', 'NPM_CONFIG_STRICT_SSL', 'PIP_INDEX_URL', 'PIP_EXTRA_INDEX_URL',
  'PIP_FIND_LINKS', 'PIP_TRUSTED_HOST', 'PIP_CERT', 'PIP_DEFAULT_TIMEOUT', 'GOPROXY', 'GOSUMDB', 'GONOSUMDB', 'GONOSUMCHECK', 'GOINSECURE', 'GOTOOLCHAIN',
]; // biome-ignore format: a list of words
const npmKeys =
  /^(@[^:]+:registry|registry|replace-registry-host|cafile|strict-ssl|proxy|https-proxy|noproxy|fetch-(retries|retry-\w+|timeout)|omit-lockfile-registry-resolved)$/;
const pipKeys = new Map(
  ['index-url', 'extra-index-url', 'find-links', 'trusted-host', 'cert', 'timeout'].map((key) => [
    key,
    `PIP_${(key === 'timeout' ? 'default-timeout' : key).toUpperCase().replaceAll('-', '_')}`,
  ]),
);
const credentials = /:\/\/[^/\s]*@/;

/** @param env the operator's environment; HOME is where their npm, pip and Go settings are */
export async function readRegistrySettings(env: Readonly<Record<string, string | undefined>>): Promise<RegistrySettings> {
  const home = env.HOME;
  const [npmrc, pip, go] =
    home === undefined
      ? ['', '', '']
      : await Promise.all([
          readOptional(`${home}/.npmrc`),
          Promise.all([readOptional(`${home}/.config/pip/pip.conf`), readOptional(`${home}/.pip/pip.conf`)]).then((texts) =>
            texts.join('\n'),
          ),
          readOptional(`${home}/.config/go/env`),
        ]);
  const merged = { ...parsePip(pip), ...parseGo(go), ...pickVariables(env) };
  const npmSettings = parseNpm(npmrc);
  const paths = [...Object.values(merged).flatMap((value) => value.split(/[\s,:]+/)), npmSettings.cafile ?? ''];
  return {
    env: merged,
    npmrc: Object.entries(npmSettings)
      .map(([key, value]) => `${key}=${value}\n`)
      .join(''),
    mounts: await existing(paths.filter((path) => path.startsWith('/') && !/^\/(usr|etc\/ssl\/certs)(\/|$)/.test(path))),
  };
}

function pickVariables(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const names = variables.flatMap((name) => [name, name.toLowerCase()]);
  return harmless(names.map((name) => [name, env[name] ?? '']));
}

function parseNpm(text: string): Record<string, string> {
  return harmless(assignments(text).filter(([key]) => npmKeys.test(key)));
}

function parsePip(text: string): Record<string, string> {
  return harmless(assignments(text).map(([key, value]) => [pipKeys.get(key) ?? '', value] as const));
}

function parseGo(text: string): Record<string, string> {
  return harmless(assignments(text).filter(([key]) => key.startsWith('GO') && variables.includes(key)));
}

function assignments(text: string): (readonly [string, string])[] {
  return text.split('\n').flatMap((line) => {
    const [, key, value] = /^\s*([^#;=[\s]+)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    return key === undefined || value === undefined ? [] : [[key, value] as const];
  });
}

/** Without unset ones, addresses with credentials, and references to variables of the operator's. */
function harmless(pairs: readonly (readonly [string, string])[]): Record<string, string> {
  return Object.fromEntries(
    pairs.filter(([name, value]) => name !== '' && value !== '' && !credentials.test(value) && !value.includes('${')),
  );
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
