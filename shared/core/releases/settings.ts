import type { Caller } from '#shared/core/accounts/principals.ts';
import { AppError, type ErrorDetail } from '#shared/errors.ts';
import { limits } from '#shared/limits.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';
import type { BootSettings } from '#shared/platform/workloads.ts';

/** What an app sets of how its instances start and of how visitors reach them. Null: not set, the default applies. */
export interface AppSettings {
  /** HTTP path that must answer below 500 before an instance gets traffic. Default: a TCP connect is enough. */
  healthPath: string | null;
  /** Longest time for one answer of that path. */
  healthTimeoutSeconds: number | null;
  /** Longest time from the start of an instance until it is up. */
  bootTimeoutSeconds: number | null;
  /** Whether a visitor stays with one release and one instance. Default: true. */
  sessionAffinity: boolean | null;
  /** Folder of the source that the app is built of, as 'services/api'. Default: all of it. */
  directory: string | null;
  /** Whether add-ons also set what clients read by themselves, as REDIS_URL and PGHOST. Default: false. */
  clientVariables: boolean | null;
}

/** Apps' settings. A preview has those of its app where it has none of its own. */
export interface Settings {
  readSettings(caller: Caller, app: string): Promise<AppSettings>;
  /**
   * Null resets a setting, undefined leaves it as it is. What concerns the start of instances belongs to releases, as variables do: a
   * change creates and deploys a release of the running image; so does a change of what add-ons set. Affinity is changed at once, the
   * folder with the next build.
   * @returns all settings after it
   */
  changeSettings(caller: Caller, app: string, changes: SettingChanges): Promise<AppSettings>;
}

/** Settings to change. */
export type SettingChanges = { [Name in keyof AppSettings]?: AppSettings[Name] | undefined };

/** Nothing is set. */
export const noSettings: AppSettings = {
  healthPath: null,
  healthTimeoutSeconds: null,
  bootTimeoutSeconds: null,
  sessionAffinity: null,
  directory: null,
  clientVariables: null,
};

/** The part that belongs to releases. */
export function bootSettingsOf({ healthPath, healthTimeoutSeconds, bootTimeoutSeconds }: AppSettings): BootSettings {
  return omitUndefined({
    healthPath: healthPath ?? undefined,
    healthTimeoutSeconds: healthTimeoutSeconds ?? undefined,
    bootTimeoutSeconds: bootTimeoutSeconds ?? undefined,
  });
}

/** The settings that give a release this part. */
export function bootSettingsAsSet(boot: BootSettings): Omit<AppSettings, 'sessionAffinity' | 'directory' | 'clientVariables'> {
  return {
    healthPath: boot.healthPath ?? null,
    healthTimeoutSeconds: boot.healthTimeoutSeconds ?? null,
    bootTimeoutSeconds: boot.bootTimeoutSeconds ?? null,
  };
}

/** Printable ASCII from a slash on, without a fragment. */
const healthPathPattern = /^\/[!-"$-~]*$/;

/** @throws AppError `validation_failed` that names each wrong setting, by the name that it has in the API */
export function checkSettings({ healthPath, healthTimeoutSeconds, bootTimeoutSeconds, directory }: SettingChanges): void {
  const { healthPathCharacters, healthTimeoutSeconds: health, bootTimeoutSeconds: boot } = limits.app;
  const details: ErrorDetail[] = [];
  if (typeof healthPath === 'string' && (!healthPathPattern.test(healthPath) || healthPath.length > healthPathCharacters))
    details.push({
      path: 'health_path',
      message: `must be a path that starts with "/", without spaces and "#", of at most ${healthPathCharacters} characters, for example /healthz`,
    });
  if (!isWithin(healthTimeoutSeconds, health.most))
    details.push({ path: 'health_timeout_seconds', message: `must be a whole number of seconds from 1 to ${health.most}` });
  if (!isWithin(bootTimeoutSeconds, boot.most))
    details.push({ path: 'boot_timeout_seconds', message: `must be a whole number of seconds from 1 to ${boot.most}` });
  if (typeof directory === 'string' && !isDirectory(directory))
    details.push({
      path: 'directory',
      message: `must be the path of a folder in the source, without "." and "..", of at most ${limits.app.directoryCharacters} characters, for example services/api`,
    });
  const [first] = details;
  if (first !== undefined) throw new AppError('validation_failed', `\`${first.path}\` ${first.message}.`, { details });
}

function isWithin(seconds: number | null | undefined, most: number): boolean {
  return seconds === null || seconds === undefined || (Number.isInteger(seconds) && seconds >= 1 && seconds <= most);
}

/** The path as trees have it: without a slash at its ends. */
function isDirectory(path: string): boolean {
  const names = path.split('/');
  return (
    path.length <= limits.app.directoryCharacters &&
    names.every((name) => !['', '.', '..', '.git'].includes(name) && !/[\0-\x1f\x7f\\]/.test(name))
  );
}
