import { readGitConfig } from '#shared/git/objects/git-config.ts';

/** Settings of a submodule in `.gitmodules`. */
export interface SubmoduleSettings {
  path?: string;
  url?: string;
  update?: string;
}

/** The settings in `.gitmodules`, by path. As in git, the last of two values counts, and so does all before a syntax error. */
export function readGitmodules(file: Buffer): ReadonlyMap<string, SubmoduleSettings> {
  const byName = new Map<string, SubmoduleSettings>();
  readGitConfig(file, (variable, value) => {
    const [, name, key] = /^submodule\.(.*)\.(path|url|update)$/s.exec(variable) ?? [];
    if (name === undefined || key === undefined || value === undefined) return;
    byName.set(name, { ...byName.get(name), [key]: Buffer.from(value, 'latin1').toString('utf8') });
  });
  return new Map([...byName.values()].flatMap((settings) => (settings.path === undefined ? [] : [[settings.path, settings]])));
}
