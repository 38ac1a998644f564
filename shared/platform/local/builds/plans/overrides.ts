/** What an app says about its own build and start beyond its language's files: railpack.json, nixpacks.toml, railway.json, Heroku's Aptfile, and variables of Railpack and Nixpacks. */
import JSON5 from 'json5';
import { parse as parseToml } from 'smol-toml';
import { z } from 'zod';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import type { BuildPlan, BuildStep } from './build-plan.ts';
import type { SourceTree } from './source-tree.ts';

const commands = z.array(z.unknown()).optional();
const texts = z.array(z.string()).optional();
const nixpacksSchema = z.looseObject({
  phases: z.record(z.string(), z.looseObject({ cmds: texts, aptPkgs: texts })).optional(),
  start: z.looseObject({ cmd: z.string().optional() }).optional(),
});
const railwaySchema = z.looseObject({
  build: z.looseObject({ buildCommand: z.string().nullish() }).optional(),
  deploy: z.looseObject({ startCommand: z.string().nullish() }).optional(),
});
const schema = z.looseObject({
  provider: z.string().optional(),
  packages: z.record(z.string(), z.string()).optional(),
  buildAptPackages: z.array(z.string()).optional(),
  steps: z.record(z.string(), z.looseObject({ commands })).optional(),
  deploy: z.looseObject({ startCommand: z.string().optional(), aptPackages: z.array(z.string()).optional() }).optional(),
});

/** Undefined and empty fields leave the builder's own in place. */
export interface Overrides {
  /** Instead of detection, by name: 'node'. */
  readonly builder?: string | undefined;
  /** Shell command lines. Only a shell inside the sandbox sees them. */
  readonly install?: string | undefined;
  readonly build?: string | undefined;
  /** Whether `build` follows what the builder does, and does not take its place. */
  readonly keepsBuild?: boolean;
  readonly start?: string | undefined;
  /** Versions by tool. */
  readonly packages: Readonly<Record<string, string>>;
  /** Names of packages of Debian. */
  readonly systemPackages: readonly string[];
}

/**
 * @param env the app's variables; they come before the file
 * @throws BuildFailure if one of the files is not valid
 */
export async function readOverrides(source: SourceTree, env: Readonly<Record<string, string>>): Promise<Overrides> {
  const read = async <Shape>(name: string, parseText: (text: string) => unknown, shape: z.ZodType<Shape>) => {
    const text = await source.readText(name);
    return text === undefined ? undefined : parse(name, () => parseText(text), shape);
  };
  const file = (await read('railpack.json', JSON5.parse, schema)) ?? {};
  const nixpacks =
    (await read('nixpacks.toml', parseToml, nixpacksSchema)) ?? (await read('nixpacks.json', JSON5.parse, nixpacksSchema));
  const railway =
    (await read('railway.json', JSON5.parse, railwaySchema)) ?? (await read('railway.toml', parseToml, railwaySchema));
  const variable = (name: string): string | undefined => env[`RAILPACK_${name}`] ?? env[`NIXPACKS_${name}`];
  const words = (name: string): readonly string[] => (variable(name) ?? '').split(/[\s,]+/).filter((word) => word !== '');
  const commandsOf = (name: string): readonly unknown[] | undefined =>
    file.steps?.[name]?.commands ?? nixpacks?.phases?.[name]?.cmds;
  const build = variable('BUILD_CMD') ?? railway?.build?.buildCommand;
  return {
    builder: file.provider,
    install: variable('INSTALL_CMD') ?? joinCommands(commandsOf('install')),
    build: build ?? joinCommands(commandsOf('build')),
    keepsBuild: build == null && commandsOf('build')?.includes('...') === true,
    start: variable('START_CMD') ?? railway?.deploy?.startCommand ?? file.deploy?.startCommand ?? nixpacks?.start?.cmd,
    packages: { ...file.packages, ...Object.fromEntries(words('PACKAGES').map(splitVersion)) },
    systemPackages: [
      ...(file.buildAptPackages ?? []),
      ...(file.deploy?.aptPackages ?? []),
      ...Object.values(nixpacks?.phases ?? {}).flatMap(({ aptPkgs }) => aptPkgs ?? []),
      ...words('BUILD_APT_PACKAGES'),
      ...words('DEPLOY_APT_PACKAGES'),
      ...words('APT_PKGS'),
      ...readAptfile(await source.readText('Aptfile')),
    ].filter((name) => name !== '...'),
  };
}

/** Names of packages, one or several in a line, as Heroku's buildpack reads them. Other repositories and addresses of packages are left out. */
function readAptfile(text: string | undefined): readonly string[] {
  const lines = (text ?? '').split('\n').map((line) => line.replace(/#.*/, '').trim());
  return lines.filter((line) => line !== '' && !/^:repo:|^https?:/.test(line)).flatMap((line) => line.split(/\s+/));
}

/** 'jq@1.7' and '@scope/name@2' in two; the newest version where there is none. */
function splitVersion(text: string): readonly [name: string, version: string] {
  const at = text.lastIndexOf('@');
  return at > 0 ? [text.slice(0, at), text.slice(at + 1)] : [text, 'latest'];
}

function parse<Shape>(name: string, read: () => unknown, shape: z.ZodType<Shape>): Shape {
  try {
    return shape.parse(read());
  } catch (error) {
    const issue = error instanceof z.ZodError ? error.issues[0] : undefined;
    const reason = issue === undefined ? (error as Error).message.split('\n')[0] : `${issue.path.join('.')} ${issue.message}`;
    throw new BuildFailure(`${name} is not valid: ${reason}`);
  }
}

/** Commands that are strings or `{"cmd": "…"}`; "..." stands for the builder's own, which stay. */
function joinCommands(list: readonly unknown[] | undefined): string | undefined {
  const lines = (list ?? []).map((command) =>
    typeof command === 'object' && command !== null && 'cmd' in command ? command.cmd : command,
  );
  const shell = lines.filter((line): line is string => typeof line === 'string' && line !== '...' && line !== '');
  return shell.length === 0 ? undefined : shell.join(' && ');
}

/** The plan with the app's own commands: those take the place of the steps that install, and of those that build. */
export function applyOverrides(plan: BuildPlan, overrides: Overrides): BuildPlan {
  const { install, build, keepsBuild, start } = overrides;
  const first = plan.steps.findIndex(({ builds }) => builds === true);
  const own = first < 0 ? plan.steps : plan.steps.slice(0, first);
  const builds = first < 0 ? [] : plan.steps.filter((each) => each.builds === true);
  // Such as removing what only the build needed.
  const after = first < 0 || install !== undefined ? [] : plan.steps.slice(first).filter((each) => each.builds !== true);
  const step = (command: string): BuildStep => ({ title: command, argv: ['/bin/sh', '-c', command] });
  const installs = install === undefined ? own : [step(install)];
  return {
    ...plan,
    steps: [...installs, ...(build === undefined ? builds : [...(keepsBuild === true ? builds : []), step(build)]), ...after],
    defaultProcesses: start === undefined ? plan.defaultProcesses : async () => ({ web: start }),
  };
}
