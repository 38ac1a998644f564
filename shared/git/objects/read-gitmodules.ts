import { readGitConfig } from '#shared/git/objects/git-config.ts';

export interface SubmoduleSettings {
  path?: string;
  url?: string;
  update?: string;
}

/** What `.gitmodules` states, by path. As with git, the last of two statements holds, and a file that breaks off holds until there. */
export function readGitmodules(file: Buffer): ReadonlyMap<string, SubmoduleSettings> {
  const byName = new Map<string, SubmoduleSettings>();
  readGitConfig(file, (variable, value) => {
    const [, name, key] = /^submodule\.(.*)\.(path|url|update)$/s.exec(variable) ?? [];
    if (name === undefined || key === undefined || value === undefined) return;
    byName.set(name, { ...byName.get(name), [key]: Buffer.from(value, 'latin1').toString('utf8') });
  });
  return new Map([...byName.values()].flatMap((stated) => (stated.path === undefined ? [] : [[stated.path, stated]])));
}
