/** Chooses toolchains of languages that come from Debian's packages, or that the operator has installed. */
import { coerce, compare, satisfies } from 'semver';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import { isDebianTool } from './debian/debian-tools.ts';
import { findHostLanguages, type LanguageName } from './host-languages.ts';
import type { ToolStore } from './tool-store.ts';
import type { Toolchain, VersionRequest } from './toolchain.ts';
import { chooseVersion, toComposerRange, toPessimisticRange, toRange } from './versions.ts';

export const languageLabels: Readonly<Record<LanguageName, string>> = {
  ruby: 'Ruby',
  php: 'PHP',
  elixir: 'Elixir',
  erlang: 'Erlang/OTP',
  gleam: 'Gleam',
  dotnet: '.NET',
};

/** By the operators that the package manager of the language has. */
const rangeReaders: Readonly<Record<LanguageName, (request: string) => string | undefined>> = {
  ruby: toPessimisticRange,
  php: toComposerRange,
  elixir: toPessimisticRange,
  erlang: toRange,
  gleam: toPessimisticRange,
  dotnet: toRange,
};

/** How versions are compared: '27.3.4.1' and '1.18.3-otp-27' are none of semver. */
function comparable(version: string): string {
  return coerce(version)?.version ?? '0.0.0';
}

/** A version as people write it, without Debian's revision: '3.1.2'. */
export function plainVersion(version: string): string {
  return version.replace(/\+.*$/, '');
}

/**
 * What the operator has installed comes before Debian's. A version that is asked for is never replaced by another.
 * @param request as the package manager of the language writes it; the newest without one
 * @throws BuildFailure with the versions that there are
 */
export async function findLanguage(
  name: LanguageName,
  request: VersionRequest | undefined,
  { store, env }: { store: ToolStore; env: Readonly<Record<string, string | undefined>> },
): Promise<Toolchain> {
  const range = request === undefined ? '*' : rangeReaders[name](request.version);
  if (range === undefined)
    throw new BuildFailure(
      `${request?.source} asks for ${languageLabels[name]} "${shorten(request?.version ?? '')}", which is no version or range of versions.`,
    );
  const installed = await findHostLanguages(name, env);
  const fitting = installed.filter(({ version }) => satisfies(comparable(version), range));
  const [newest] = fitting.sort((one, other) => compare(comparable(other.version), comparable(one.version)));
  if (newest !== undefined) return newest;
  const offered = isDebianTool(name) ? await store.listVersions(name) : [];
  const version = chooseVersion(range, offered);
  if (version !== undefined && isDebianTool(name)) {
    const tool = { name, version };
    await store.ensureTool(tool);
    // Its programs are in the directories of the system.
    return { version: plainVersion(version), path: [], mounts: [{ kind: 'stored', ...tool }] };
  }
  const has = [...installed.map((found) => found.version), ...offered.map(plainVersion)];
  throw new BuildFailure(describeMissing(name, request, has));
}

function describeMissing(name: LanguageName, request: VersionRequest | undefined, has: readonly string[]): string {
  const label = languageLabels[name];
  const wanted = /\d+(?:\.\d+)*/.exec(request?.version ?? '')?.[0];
  const command = `mise install ${name}${wanted === undefined ? '' : `@${wanted}`}`;
  const asked =
    request === undefined ? `The app needs ${label}` : `${request.source} asks for ${label} ${shorten(request.version)}`;
  if (has.length > 0) {
    const sorted = [...new Set(has)].sort((one, other) => compare(comparable(one), comparable(other)));
    return `${asked}, and this platform has ${sorted.join(', ')}. Ask for one of them, or let its operator install it: ${command}`;
  }
  return isDebianTool(name)
    ? `${asked}, which comes from Debian, whose packages this platform cannot reach. Try again, or let its operator install it: ${command}`
    : `${asked}, which this platform does not have and no package registry offers. Its operator can install it: ${command}`;
}

function shorten(version: string): string {
  return version.length > 80 ? `${version.slice(0, 80)}…` : version;
}
