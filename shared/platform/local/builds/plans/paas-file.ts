/** What an app says of its build and start in a paas.yml at the top of its source. */
import { parse } from 'yaml';
import { z } from 'zod';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import { checkProcesses, type Procfile, parseProcfile } from '#shared/platform/procfile.ts';
import { type Overrides, readOverrides } from './overrides.ts';
import type { SourceTree } from './source-tree.ts';

const text = z.string().trim().min(1, 'must not be empty');
/** A command line, or several of which each runs when the one before has succeeded. */
const commands = z.union([text, z.array(text).min(1)], 'must be a command or a list of commands');
const shape = {
  builder: text.optional(),
  dockerfile: text.optional(),
  install: commands.optional(),
  build: commands.optional(),
  start: text.optional(),
  release: text.optional(),
  processes: z.record(z.string(), text).optional(),
  versions: z.record(z.string(), text).optional(),
  apt: z.array(text).optional(),
};
const schema = z.object(shape);
type PaasFile = z.infer<typeof schema>;

const fileNames = ['paas.yml', 'paas.yaml'] as const;

/** What belongs elsewhere, and where. */
const elsewhere: Readonly<Record<string, string>> = {
  directory: 'is a setting of the app: paas settings:set directory=PATH',
  healthcheck: 'is a setting of the app: paas settings:set health-path=PATH',
  'health-path': 'is a setting of the app: paas settings:set health-path=PATH',
  env: 'belongs to the variables of the app: paas config:set NAME=value',
  port: 'is chosen by the platform: listen on the variable PORT',
  addons: 'are added to the app by a command: paas addons:create database, paas addons:create kvstore',
  scale: 'belongs to the app, not to its source: paas ps:scale web=2',
};

/** Undefined without such a file. @throws BuildFailure that names the fault */
async function readPaasFile(source: SourceTree): Promise<readonly [name: string, file: PaasFile] | undefined> {
  for (const name of fileNames) {
    const content = await source.readText(name);
    if (content !== undefined) return [name, parsePaasFile(name, content)];
  }
  return undefined;
}

function parsePaasFile(name: string, content: string): PaasFile {
  let value: unknown;
  try {
    // All values stay text: 3.10 is a version, not a number.
    value = parse(content, { schema: 'failsafe', logLevel: 'error' }) ?? {};
  } catch (error) {
    throw new BuildFailure(`${name} is not valid: ${(error as Error).message.split('\n')[0]?.replace(/:$/, '.')}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new BuildFailure(`${name} must have keys with values, for example "start: node server.js".`);
  for (const key of Object.keys(value)) {
    if (Object.hasOwn(shape, key)) continue;
    const place = Object.hasOwn(elsewhere, key.replaceAll('_', '-')) ? elsewhere[key.replaceAll('_', '-')] : undefined;
    throw new BuildFailure(
      place === undefined
        ? `${name} has an unknown key "${key.slice(0, 60)}". Known keys: ${Object.keys(shape).join(', ')}.`
        : `${name} has the key "${key}", which ${place}.`,
    );
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new BuildFailure(`${name} is not valid: "${issue?.path.join('.')}": ${issue?.message}`);
}

/** What an app says about its build and what it runs. */
export interface AppOverrides extends Overrides {
  /** Path of the Dockerfile, relative to the source. */
  readonly dockerfile?: string | undefined;
  /** By tool; they come before `packages`. */
  readonly versions: Readonly<Record<string, string>>;
  /** Undefined where neither a Procfile nor paas.yml declares any. */
  readonly declared: DeclaredProcesses | undefined;
}

/** Process types and the release command of a Procfile, paas.yml, or both. */
export interface DeclaredProcesses extends Procfile {
  /** 'Procfile', 'paas.yml', 'Procfile and paas.yml' */
  readonly from: string;
}

/** The commands that an app itself declares, of process types and of releases. */
export function findOwnCommands({ declared, start }: AppOverrides): readonly string[] {
  const commands = [...Object.values(declared?.processes ?? {}), declared?.releaseCommand, start];
  return commands.filter((command) => command !== undefined);
}

/**
 * The app's variables come before paas.yml, and that before the files of other platforms.
 * @param env the app's variables
 * @throws BuildFailure if one of the files is not valid
 */
export async function readAppOverrides(source: SourceTree, env: Readonly<Record<string, string>>): Promise<AppOverrides> {
  const others = await readOverrides(source, env);
  const [name, file] = (await readPaasFile(source)) ?? [];
  const declared = combineProcesses(await readProcfile(source), name, file);
  const dockerfile = env['PAAS_DOCKERFILE'] ?? file?.dockerfile;
  if (file === undefined) return { ...others, dockerfile, declared, versions: {} };
  const choose = (variable: string, own: string | undefined, other: string | undefined): string | undefined =>
    env[`RAILPACK_${variable}`] ?? env[`NIXPACKS_${variable}`] ?? own ?? other;
  return {
    ...others,
    dockerfile,
    declared,
    builder: file.builder ?? others.builder,
    install: choose('INSTALL_CMD', joinCommands(file.install), others.install),
    build: choose('BUILD_CMD', joinCommands(file.build), others.build),
    keepsBuild: others.keepsBuild === true && file.build === undefined,
    start: choose('START_CMD', file.start ?? file.processes?.['web'] ?? Object.values(file.processes ?? {})[0], others.start),
    versions: file.versions ?? {},
    systemPackages: [...others.systemPackages, ...(file.apt ?? [])],
  };
}

function joinCommands(list: string | readonly string[] | undefined): string | undefined {
  return typeof list === 'string' ? list : list?.join(' && ');
}

async function readProcfile(source: SourceTree): Promise<Procfile | undefined> {
  const content = await source.readText('Procfile');
  return content === undefined ? undefined : parseProcfile(content);
}

/** Those of paas.yml come first. @throws BuildFailure that names the file and the process type at fault */
function combineProcesses(
  procfile: Procfile | undefined,
  name: string | undefined,
  { start, release, processes }: PaasFile = {},
): DeclaredProcesses | undefined {
  const own = { ...processes, ...(start === undefined ? {} : { web: start }), ...(release === undefined ? {} : { release }) };
  if (name === undefined || Object.keys(own).length === 0) return procfile && { ...procfile, from: 'Procfile' };
  const declared = checkProcesses(name, own);
  return {
    ...procfile,
    ...declared,
    processes: { ...procfile?.processes, ...declared.processes },
    from: procfile === undefined ? name : `Procfile and ${name}`,
  };
}
