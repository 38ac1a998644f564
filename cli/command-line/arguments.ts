import { parseArgs } from 'node:util';
import { closest } from '#cli/command-line/closest.ts';
import { usageError } from '#cli/errors/cli-error.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';

/** A flag. `refused`: a flag that people may expect, which is refused with a reason. */
export type FlagSpec =
  | { readonly kind: 'boolean'; readonly short?: string; readonly summary: string }
  | { readonly kind: 'string' | 'integer'; readonly short?: string; readonly value: string; readonly summary: string }
  | { readonly kind: 'refused'; readonly reason: string };

/**
 * An argument. `many` takes all remaining ones, at least one. `any` may take none. `command` is another command line, with its flags, and
 * has at least one word. Each of these must be the last.
 */
export interface ArgumentSpec {
  readonly kind: 'required' | 'optional' | 'many' | 'any' | 'command';
  readonly summary: string;
}

/** Flags by their long names. */
export type FlagSpecs = Readonly<Record<string, FlagSpec>>;
/** Arguments by name, in the order of the command line. */
export type ArgumentSpecs = Readonly<Record<string, ArgumentSpec>>;

type FlagValue<Spec extends FlagSpec> = Spec['kind'] extends 'boolean'
  ? boolean
  : Spec['kind'] extends 'integer'
    ? number | undefined
    : Spec['kind'] extends 'string'
      ? string | undefined
      : undefined;
/** Values of flags. A boolean flag that is not given is false, any other undefined. */
export type FlagValues<Specs extends FlagSpecs> = { readonly [Name in keyof Specs]: FlagValue<Specs[Name]> };

type ArgumentValue<Spec extends ArgumentSpec> = Spec['kind'] extends 'required'
  ? string
  : Spec['kind'] extends 'optional'
    ? string | undefined
    : readonly string[];
/** Values of arguments. */
export type ArgumentValues<Specs extends ArgumentSpecs> = { readonly [Name in keyof Specs]: ArgumentValue<Specs[Name]> };

/** A parsed command line. */
export interface ParsedArguments<Flags extends FlagSpecs, Arguments extends ArgumentSpecs> {
  readonly flags: FlagValues<Flags>;
  readonly args: ArgumentValues<Arguments>;
}

type Values = Record<string, string | number | boolean | undefined | readonly string[]>;

/**
 * Parses `argv` by the specs. Errors never contain values: they may be secrets.
 * @throws CliError with exit code 2 for unknown or refused flags, and for missing or superfluous values and arguments
 */
export function parseArguments<const Flags extends FlagSpecs, const Arguments extends ArgumentSpecs>(
  argv: readonly string[],
  specs: { flags: Flags; args: Arguments },
): ParsedArguments<Flags, Arguments> {
  const own = countOwnWords(argv, specs);
  const command = argv.slice(own);
  const tokens = tokenize(argv.slice(0, own), specs.flags);
  const flags: Values = Object.fromEntries(
    Object.entries(specs.flags).map(([name, spec]) => [name, spec.kind === 'boolean' ? false : undefined]),
  );
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value);
    if (token.kind === 'option') flags[token.name] = readFlag(token, specs.flags);
  }
  return {
    flags: flags as FlagValues<Flags>,
    args: readPositionals([...positionals, ...command], specs) as ArgumentValues<Arguments>,
  };
}

/** How many words of `argv` belong to the command itself: all, but for one with an argument of the kind `command`, which starts there. */
export function countOwnWords(argv: readonly string[], { flags, args }: { flags: FlagSpecs; args: ArgumentSpecs }): number {
  if (!Object.values(args).some(({ kind }) => kind === 'command')) return argv.length;
  const before = Object.values(args).length - 1;
  const positionals = tokenize(argv, flags).filter(({ kind }) => kind === 'positional');
  return positionals[before]?.index ?? argv.length;
}

function tokenize(argv: readonly string[], flags: FlagSpecs) {
  const options = optionConfig(flags);
  return parseArgs({ args: [...argv], options, strict: false, allowPositionals: true, tokens: true }).tokens;
}

function optionConfig(flags: FlagSpecs): Record<string, { type: 'boolean' | 'string'; short?: string }> {
  return Object.fromEntries(
    Object.entries(flags).map(([name, spec]) => [
      name,
      omitUndefined({
        type: spec.kind === 'boolean' ? ('boolean' as const) : ('string' as const),
        short: 'short' in spec ? spec.short : undefined,
      }),
    ]),
  );
}

function readFlag(
  token: { name: string; rawName: string; value?: string | undefined },
  flags: FlagSpecs,
): string | number | boolean {
  const spec = Object.hasOwn(flags, token.name) ? flags[token.name] : undefined;
  if (spec === undefined) throw unknownFlag(token.rawName, flags);
  if (spec.kind === 'refused') throw usageError(`${token.rawName} is not supported: ${spec.reason}`);
  if (spec.kind === 'boolean') {
    if (token.value !== undefined) throw usageError(`${token.rawName} does not take a value.`);
    return true;
  }
  if (token.value === undefined || token.value === '')
    throw usageError(`${token.rawName} requires a value: ${token.rawName} ${spec.value}`);
  if (spec.kind === 'string') return token.value;
  if (!/^[1-9]\d{0,8}$/.test(token.value)) throw usageError(`${token.rawName} must be a positive whole number.`);
  return Number(token.value);
}

function unknownFlag(rawName: string, flags: FlagSpecs): Error {
  const near = closest(rawName.replace(/^-+/, ''), Object.keys(flags));
  return usageError(`Unknown flag ${rawName}.`, near === undefined ? undefined : `Did you mean --${near}?`);
}

function readPositionals(positionals: readonly string[], specs: { flags: FlagSpecs; args: ArgumentSpecs }): Values {
  const values: Values = {};
  const rest = [...positionals];
  for (const [name, spec] of Object.entries(specs.args)) {
    const wantsOne = spec.kind === 'required' || spec.kind === 'optional';
    if (rest.length === 0 && spec.kind !== 'optional' && spec.kind !== 'any') {
      throw usageError(`${name.toUpperCase()} is missing: ${spec.summary}.`);
    }
    values[name] = wantsOne ? rest.shift() : rest.splice(0);
  }
  if (rest.length > 0) {
    const count = Object.keys(specs.args).length;
    const takes = count === 0 ? 'no arguments' : count === 1 ? 'one argument' : `${count} arguments`;
    throw usageError(`This command takes ${takes}.`, 'app' in specs.flags ? 'To select the app, use -a NAME.' : undefined);
  }
  return values;
}
