import { parseSettings, type Settings, SettingsError } from '#shared/settings/settings.ts';

/** What the API at the edge needs beside the usual settings. */
export interface EdgeSettings extends Settings {
  databaseUrl: string;
  internalUrl: string;
  secretKey: string;
}

/**
 * @param env of the process, or the bindings of a worker that are text
 * @throws SettingsError naming the first setting that is bad or missing
 */
export function parseEdgeSettings(env: Readonly<Record<string, unknown>>): EdgeSettings {
  const text = Object.entries(env).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value] as const] : []));
  const settings = parseSettings(Object.fromEntries(text));
  const { databaseUrl, internalUrl, secretKey } = settings;
  const require = <Value>(value: Value | undefined, name: string, what: string): Value => {
    if (value === undefined) throw new SettingsError(`${name}: is required at the edge: ${what}.`);
    return value;
  };
  return {
    ...settings,
    databaseUrl: require(databaseUrl, 'PAAS_DATABASE_URL', 'the database of the platform'),
    internalUrl: require(internalUrl, 'PAAS_INTERNAL_URL', 'where the PAAS_INTERNAL_PORT of the worker is reached'),
    secretKey: require(secretKey, 'PAAS_SECRET_KEY', "the worker's, or the content of its master.key"),
  };
}
