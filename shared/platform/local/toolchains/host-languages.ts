/** Languages that the operator has installed in versions of their own: by mise, asdf or rbenv, or unpacked in /opt. */
import { readdir, realpath } from 'node:fs/promises';
import { findExecutable } from '#shared/files/find-executable.ts';
import { ifMissing } from '#shared/files/if-missing.ts';
import type { Toolchain } from './toolchain.ts';

export const languageNames = ['ruby', 'php', 'elixir', 'erlang', 'gleam', 'dotnet'] as const;
export type LanguageName = (typeof languageNames)[number];

/** The program that shows that an installation is whole. */
const programs: Readonly<Record<LanguageName, string>> = {
  ruby: 'ruby',
  php: 'php',
  elixir: 'elixir',
  erlang: 'erl',
  gleam: 'gleam',
  dotnet: 'dotnet',
};

const versionName = /^\d+\.\d+(\.\d+)*([-.][0-9A-Za-z.-]+)?$/;

/** Each in a directory with the name of its version: `/opt/ruby/3.4.1`. In no order. */
export async function findHostLanguages(
  name: LanguageName,
  env: Readonly<Record<string, string | undefined>>,
): Promise<readonly Toolchain[]> {
  const home = env['HOME'] ?? '/nonexistent';
  const mise = env['MISE_DATA_DIR'] ?? `${env['XDG_DATA_HOME'] ?? `${home}/.local/share`}/mise`;
  const roots = [
    `/opt/${name}`,
    `${mise}/installs/${name}`,
    `${env['ASDF_DATA_DIR'] ?? `${home}/.asdf`}/installs/${name}`,
    ...(name === 'ruby' ? [`${env['RBENV_ROOT'] ?? `${home}/.rbenv`}/versions`, '/opt/rubies'] : []),
  ];
  const found = new Map<string, Toolchain>();
  for (const root of roots) {
    for (const entry of await readdir(root).catch(ifMissing([] as string[]))) {
      // Names such as `3.4` and `latest` are links to a version.
      const directory = await realpath(`${root}/${entry}`).catch(ifMissing(undefined));
      const version = directory?.slice(directory.lastIndexOf('/') + 1).replace(/^ruby-/, '') ?? '';
      if (directory === undefined || !versionName.test(version) || found.has(version)) continue;
      const path = [`${directory}/bin`, directory];
      const program = await findExecutable(programs[name], path.join(':'));
      if (program === undefined) continue;
      found.set(version, {
        version,
        path: [program.slice(0, program.lastIndexOf('/'))],
        mounts: [{ kind: 'host', path: directory }],
      });
    }
  }
  return [...found.values()];
}
