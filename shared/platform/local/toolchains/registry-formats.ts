/** The operator's registries of npm and Python in the formats of tools that do not read the settings of npm and pip. */
import { parse } from 'smol-toml';
import { stringify } from 'yaml';
import { z } from 'zod';

/**
 * Settings of Yarn 2 and later, for `~/.yarnrc.yml`.
 * @param npm settings of an .npmrc
 */
export function toYarnSettings(npm: Readonly<Record<string, string>>): string {
  const scopes = Object.entries(npm).flatMap(([key, value]) => {
    const scope = /^@([^:]+):registry$/.exec(key)?.[1];
    return scope === undefined ? [] : [[scope, { npmRegistryServer: value }] as const];
  });
  const token = (registry: string): string | undefined => npm[`//${registry.replace(/^https?:\/\//, '')}:_authToken`];
  const plain = [npm['registry'], ...scopes.map(([, { npmRegistryServer }]) => npmRegistryServer)];
  const hosts = plain.flatMap((address) => /^http:\/\/([^/:]+)/.exec(address ?? '')?.[1] ?? []);
  const settings = {
    npmRegistryServer: npm['registry'],
    npmAuthToken: token(npm['registry'] ?? ''),
    httpProxy: npm['proxy'],
    httpsProxy: npm['https-proxy'],
    httpsCaFilePath: npm['cafile'],
    ...(scopes.length === 0 ? {} : { npmScopes: Object.fromEntries(scopes) }),
    // Yarn refuses registries without TLS that it is not told of.
    ...(hosts.length === 0 ? {} : { unsafeHttpWhitelist: hosts }),
  };
  const known = Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
  return Object.keys(known).length === 0 ? '' : stringify(known);
}

const uvSchema = z.looseObject({
  index: z.array(z.looseObject({ url: z.string().optional(), default: z.boolean().optional() })).optional(),
  'index-url': z.string().optional(),
  'extra-index-url': z.array(z.string()).optional(),
});

/** Instead of PyPI, and beside it. Addresses may have credentials. */
export interface PythonIndexes {
  readonly main: string | undefined;
  readonly further: readonly string[];
}

/**
 * Of uv's own variables, else its files, else pip's settings.
 * @param files contents of uv.toml, later ones winning
 * @param pip the variables of pip that its settings stand for
 */
export function readUvIndexes(
  files: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  pip: Readonly<Record<string, string>>,
): PythonIndexes {
  const settings = files.flatMap((text) => readUvFile(text)).reverse();
  const main = [
    env['UV_DEFAULT_INDEX'] ?? env['UV_INDEX_URL'],
    ...settings.flatMap((file) => [file.index?.find((index) => index.default === true)?.url, file['index-url']]),
    pip['PIP_INDEX_URL'],
  ];
  const own = [
    ...words(env['UV_INDEX'] ?? env['UV_EXTRA_INDEX_URL']).map((word) => word.replace(/^[\w-]+=/, '')),
    ...settings.flatMap((file) => [
      ...(file.index ?? []).flatMap((index) => (index.default === true || index.url === undefined ? [] : [index.url])),
      ...(file['extra-index-url'] ?? []),
    ]),
  ];
  const address = main.find((text) => text !== undefined && text !== '');
  return {
    main: address?.replace(/^[\w-]+=(?=https?:)/, ''),
    further: own.length > 0 ? own : words(pip['PIP_EXTRA_INDEX_URL']),
  };
}

function readUvFile(text: string): readonly z.infer<typeof uvSchema>[] {
  try {
    return [uvSchema.parse(parse(text))];
  } catch {
    // The operator's uv reports what is wrong with it.
    return [];
  }
}

function words(text: string | undefined): readonly string[] {
  return (text ?? '').split(/[\s,]+/).filter((word) => word !== '');
}

/** For `~/.config/uv/uv.toml`. Empty addresses count as none. */
export function toUvSettings(main: string | undefined, further: readonly string[], trustedHosts: string | undefined): string {
  const toml = (text: string): string => JSON.stringify(text);
  const indexes = [
    ...further.filter((url) => url !== '').map((url) => `[[index]]\nurl = ${toml(url)}\n`),
    ...(main === undefined || main === '' ? [] : [`[[index]]\nurl = ${toml(main)}\ndefault = true\n`]),
  ];
  const hosts = words(trustedHosts);
  const insecure = indexes.length === 0 || hosts.length === 0 ? '' : `allow-insecure-host = [${hosts.map(toml).join(', ')}]\n`;
  return indexes.length === 0 ? '' : `${insecure}${indexes.join('')}`;
}

/** Variables of tools that know one index only. */
export function toolSettings(pythonIndex: string | undefined): Readonly<Record<string, string>> {
  return pythonIndex === undefined || pythonIndex === '' ? {} : { PDM_PYPI_URL: pythonIndex, PIPENV_PYPI_MIRROR: pythonIndex };
}
