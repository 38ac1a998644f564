/** What an app says about its own build and start beyond its language's files: railpack.json, and variables of Railpack and Nixpacks. */
import JSON5 from 'json5';
import { z } from 'zod';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import type { BuildPlan, BuildStep } from './builder.ts';
import type { SourceTree } from './source-tree.ts';

const commands = z.array(z.unknown()).optional();
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
  readonly start?: string | undefined;
  /** Versions by tool. */
  readonly packages: Readonly<Record<string, string>>;
  /** Packages of Debian, which an app cannot install here. */
  readonly systemPackages: readonly string[];
}

/**
 * @param env the app's variables; they come before the file
 * @throws BuildFailure if railpack.json is not valid
 */
export async function readOverrides(source: SourceTree, env: Readonly<Record<string, string>>): Promise<Overrides> {
  const text = await source.readText('railpack.json');
  const file = text === undefined ? {} : parse(text);
  const variable = (name: string): string | undefined => env[`RAILPACK_${name}`] ?? env[`NIXPACKS_${name}`];
  const words = (name: string): readonly string[] => (variable(name) ?? '').split(/[\s,]+/).filter((word) => word !== '');
  return {
    builder: file.provider,
    install: variable('INSTALL_CMD') ?? joinCommands(file.steps?.['install']?.commands),
    build: variable('BUILD_CMD') ?? joinCommands(file.steps?.['build']?.commands),
    start: variable('START_CMD') ?? file.deploy?.startCommand,
    packages: { ...file.packages, ...Object.fromEntries(words('PACKAGES').map(splitVersion)) },
    systemPackages: [
      ...(file.buildAptPackages ?? []),
      ...(file.deploy?.aptPackages ?? []),
      ...words('BUILD_APT_PACKAGES'),
      ...words('DEPLOY_APT_PACKAGES'),
    ].filter((name) => name !== '...'),
  };
}

/** 'jq@1.7' and '@scope/name@2' in two; the newest version where there is none. */
function splitVersion(text: string): readonly [name: string, version: string] {
  const at = text.lastIndexOf('@');
  return at > 0 ? [text.slice(0, at), text.slice(at + 1)] : [text, 'latest'];
}

function parse(text: string): z.infer<typeof schema> {
  try {
    return schema.parse(JSON5.parse(text));
  } catch (error) {
    const issue = error instanceof z.ZodError ? error.issues[0] : undefined;
    const reason = issue === undefined ? (error as Error).message.split('\n')[0] : `${issue.path.join('.')} ${issue.message}`;
    throw new BuildFailure(`railpack.json is not valid: ${reason}`);
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

/** The plan with the app's own commands: those replace the steps that install, and follow the steps that build. */
export function applyOverrides(plan: BuildPlan, overrides: Overrides): BuildPlan {
  const { install, build, start, systemPackages } = overrides;
  const step = (command: string): BuildStep => ({ title: command, argv: ['/bin/sh', '-c', command] });
  return {
    ...plan,
    notes: [
      ...plan.notes,
      ...(systemPackages.length === 0
        ? []
        : [
            `Not installed: ${systemPackages.join(', ')}. Apps use the Debian packages of this platform, which its operator installs.`,
          ]),
    ],
    steps: [...(install === undefined ? plan.steps : [step(install)]), ...(build === undefined ? [] : [step(build)])],
    defaultProcesses: start === undefined ? plan.defaultProcesses : async () => ({ web: start }),
  };
}
