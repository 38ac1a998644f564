import type { Log } from '#shared/log.ts';
import type { Settings } from '#shared/settings/settings.ts';

/** What a main hands to the parts that it starts. */
export interface StartOptions {
  settings: Settings;
  /** Absolute. */
  dataDir: string;
  /** The operator's environment, for builds: where tools are and how registries are reached. */
  hostEnv: Readonly<Record<string, string | undefined>>;
  log: Log;
  /** Prints a line on what is being done, for whoever waits for the start. */
  report(line: string): void;
}
