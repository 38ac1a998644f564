/** Texts that tools end with, and what to tell the owner of the app instead. */
import { type KnownCause, languageCauses } from './language-causes.ts';

/** How tools name a host that they could not reach. */
const unreachable = new RegExp(
  [
    'Could not resolve host: ',
    'getaddrinfo (?:ENOTFOUND|EAI_AGAIN) ',
    'UnknownHostException: ',
    'error sending request for url \\(https?://',
    "Import 'https?://",
    "HTTPS?ConnectionPool\\(host='",
    'dial tcp: lookup ',
    "Temporary failure resolving '",
    'Could not (?:fetch specs from|reach host) (?:https?://)?',
    `failed_connect, \\[\\{:to_address, \\{~?c?['"]`,
  ]
    .map((text) => `(?:${text})`)
    .join('|')
    .replace(/^(.*)$/, '(?:$1)([\\w.-]{0,200}\\w)'),
);

/** Packages of Debian by what is missed without them: a description for pkg-config, or a header. */
const debianPackages: Readonly<Record<string, string>> = {
  'cairo.pc': 'libcairo2-dev',
  'pangocairo.pc': 'libpango1.0-dev',
  'pixman-1.pc': 'libpixman-1-dev',
  'librsvg-2.0.pc': 'librsvg2-dev',
  'vips-cpp.pc': 'libvips-dev',
  'openssl.pc': 'libssl-dev',
  'libpq.pc': 'libpq-dev',
  'libpq-fe.h': 'libpq-dev',
  'mysqlclient.pc': 'default-libmysqlclient-dev',
  'libffi.pc': 'libffi-dev',
  'ffi.h': 'libffi-dev',
  'libxml-2.0.pc': 'libxml2-dev',
  'libxml/xmlversion.h': 'libxml2-dev',
  'lber.h': 'libldap-dev',
  'ldap.h': 'libldap-dev',
  'alsa.pc': 'libasound2-dev',
  'dbus-1.pc': 'libdbus-1-dev',
  'libudev.pc': 'libudev-dev',
  'sqlite3.pc': 'libsqlite3-dev',
  'zlib.pc': 'zlib1g-dev',
};

/** @param file what the missing package has */
function inAptfile(file: string): string {
  const name = debianPackages[file];
  return name === undefined
    ? `Commit an Aptfile with the -dev package of Debian that has ${file}, which https://packages.debian.org finds.`
    : `Commit an Aptfile with the line: ${name}`;
}

/** In the order in which they are looked for: the first that matches is the cause. */
export const knownCauses: readonly KnownCause[] = [
  {
    pattern: /`npm ci` can only install packages when your package\.json and package-lock\.json|npm (?:error|ERR!) code EUSAGE/,
    cause: () => 'package-lock.json does not match package.json. Run `npm install` and commit package-lock.json.',
  },
  {
    pattern: /ERR_PNPM_OUTDATED_LOCKFILE/,
    cause: () => 'pnpm-lock.yaml does not match package.json. Run `pnpm install` and commit pnpm-lock.yaml.',
  },
  {
    pattern: /Your lockfile needs to be updated|YN0028/,
    cause: () => 'yarn.lock does not match package.json. Run `yarn install` and commit yarn.lock.',
  },
  { pattern: /[Mm]issing script:? "?([\w:.-]+)"?/, cause: ([, name]) => `package.json has no script "${name}".` },
  {
    pattern:
      /npm (?:error|ERR!) 404 {1,9}(?:The requested resource )?'?([^'\s]{1,300})'? (?:is not in this registry|could not be found)/,
    cause: ([, name]) => `The package ${name} is not in the registry. Check its name and version in package.json.`,
  },
  {
    pattern: /ETARGET|No matching version found for (\S+?)\.?$/m,
    cause: ([, name]) => `There is no such version${name === undefined ? '' : `: ${name}`}.`,
  },
  {
    pattern: /ERROR: No matching distribution found for (.+)$/m,
    cause: ([, name]) => `There is no Python package ${name}. Check its name and version, and whether it supports this Python.`,
  },
  {
    pattern: /missing go\.sum entry|updates to go\.(?:mod|sum) needed/,
    cause: () => 'go.sum does not match go.mod. Run `go mod tidy` and commit go.sum.',
  },
  {
    pattern: /go\.mod requires go >= (\S+) \(running go (\S+?);?[ )]/,
    cause: ([, wanted, has]) => `go.mod asks for Go ${wanted}, and this platform has ${has}.`,
  },
  {
    pattern: /The lockfile at `uv\.lock` needs to be updated/,
    cause: () => 'uv.lock does not match pyproject.toml. Run `uv lock` and commit uv.lock.',
  },
  {
    pattern: /pyproject\.toml changed significantly since poetry\.lock was last generated/,
    cause: () => 'poetry.lock does not match pyproject.toml. Run `poetry lock` and commit poetry.lock.',
  },
  {
    pattern: /lockfile had changes, but lockfile is frozen/,
    cause: () => 'The lockfile of Bun does not match package.json. Run `bun install` and commit bun.lock.',
  },
  {
    pattern: /npm (?:error|ERR!) code ERESOLVE[^]{0,2000}?npm (?:error|ERR!) (?:Found|While resolving): (\S{1,200})/,
    cause: ([, name]) =>
      `Packages need versions of one another that do not fit, first seen at ${name}. Run \`npm install\` until it succeeds, or write legacy-peer-deps=true into .npmrc.`,
  },
  {
    pattern: /npm (?:error|ERR!) code EINTEGRITY|YN0018|ERR_PNPM_TARBALL_INTEGRITY|IntegrityCheckFailed/,
    cause: () =>
      'A package is not the one that the lockfile has the hash of. Delete the lockfile, install again and commit the new one.',
  },
  {
    pattern:
      /The engine "(\w{1,40})" is incompatible with this module\. Expected version "([^"\n]{1,80})"\. Got "([^"\n]{1,40})"/,
    cause: ([, engine, wanted, has]) =>
      `A package needs ${engine} ${wanted}, and the app is built with ${has}. Ask for another version in "engines" of package.json.`,
  },
  {
    pattern: /ERR_OSSL_EVP_UNSUPPORTED|digital envelope routines::unsupported/,
    cause: () =>
      'This version of webpack does not work with Node.js 17 and later. Update webpack, or set the variable NODE_OPTIONS=--openssl-legacy-provider.',
  },
  {
    pattern:
      /No package '([^'\n]{1,80})' found|Package '?([^'\s,]{1,80})'?,? (?:required by '[^'\n]{1,80}', )?(?:was )?not found|The system library `([^`\n]{1,80})` required by crate|Dependency "([^"\n]{1,80})" not found/,
    cause: (match) => {
      const name = match.slice(1).find((text) => text !== undefined);
      return `The library ${name} is missing, and a package of the app is compiled with it. ${inAptfile(`${name}.pc`)}`;
    },
  },
  {
    pattern: /Could not find directory of OpenSSL installation/,
    cause: () => `The library OpenSSL is missing. ${inAptfile('openssl.pc')}`,
  },
  {
    pattern: /pg_config executable not found|Error: pg_config/,
    cause: () =>
      `The library libpq is missing, and psycopg2 is compiled with it. Use psycopg2-binary. Or: ${inAptfile('libpq.pc')}`,
  },
  {
    pattern: /fatal error: ([\w./+-]{1,120}\.h(?:pp)?): No such file or directory/,
    cause: ([, name]) => `The header ${name} is missing, and a package of the app is compiled with it. ${inAptfile(name ?? '')}`,
  },
  {
    pattern: /ModuleNotFoundError: No module named '(distutils|imp|asynchat|asyncore|smtpd)'/,
    cause: ([, name]) =>
      `A package needs ${name}, which Python has no longer had since 3.12. Update the package, or ask for Python 3.11 in .python-version.`,
  },
  {
    pattern:
      /ERROR: ResolutionImpossible|Cannot install [^\n]{1,500} because these package versions have conflicting dependencies/,
    cause: () => 'requirements.txt asks for versions that contradict one another. The lines above name the packages.',
  },
  {
    pattern: /No solution found when resolving dependencies[^\n]{0,200}\n[^A-Za-z\n]{0,20}(Because [^\n]{1,300})/,
    cause: ([, reason]) => `No versions of the dependencies fit together. ${reason}`,
  },
  {
    pattern: /Because ([^\n]{1,300}), version solving failed/,
    cause: ([, reason]) => `No versions of the dependencies fit together: ${reason}.`,
  },
  {
    pattern: /no required module provides package (\S{1,200}?)(?:;|:|$)/m,
    cause: ([, name]) => `go.mod does not have the module of ${name}. Run \`go mod tidy\` and commit go.mod and go.sum.`,
  },
  {
    pattern: /error: (?:release version|invalid target release:?) (\d{1,2})(?: not supported)?/,
    cause: ([, version]) =>
      `The app is compiled for Java ${version}, and this JDK is older. Ask for Java ${version} in system.properties: java.runtime.version=${version}`,
  },
  {
    pattern: /error: package `([^`\n]{1,120})` cannot be built because it requires rustc (\S{1,40}) or newer/,
    cause: ([, name, version]) =>
      `The crate ${name} needs Rust ${version}. Ask for it in rust-toolchain.toml: channel = "${(version ?? '').replace(/[,.]$/, '')}"`,
  },
  {
    pattern: /@prisma\/client"?' has no exported member|@prisma\/client did not initialize yet/,
    cause: () =>
      'The client of Prisma was not generated, perhaps since its programs could not be downloaded from binaries.prisma.sh. To see why, run `prisma generate` at the start of the script "build".',
  },
  {
    pattern:
      /^(?:\S{1,40}\s)?([^\s()]{1,200}\.[cm]?tsx?)(?:\((\d{1,6}),\d{1,6}\)|:(\d{1,6}):\d{1,6})(?::| -) error (TS\d{1,6}): ([^\n]{1,300})$/m,
    cause: ([, file, one, two, code, text]) => `TypeScript refuses ${file}, line ${one ?? two}: ${text} (${code})`,
  },
  ...languageCauses,
  {
    pattern: unreachable,
    cause: ([, host]) =>
      `${host} could not be reached. Try again. If that does not help, the operator has to check the network of this platform.`,
  },
  {
    pattern:
      /Module not found: (?:Error: )?Can't resolve '([^'\n]{1,200})'|failed to resolve import "([^"\n]{1,200})"|Could not resolve "([^"\n]{1,200})"|Cannot find (?:module|package) '([^'\n]{1,200})'/,
    cause: ([, one, two, three, four]) =>
      `${one ?? two ?? three ?? four} could not be found. Add it to the dependencies in package.json, or check the path and its upper and lower case.`,
  },
  {
    pattern:
      /^(?:(?:\/bin\/)?(?:ba|da)?sh|\/run\/paas\/launch): (?:line )?(?:\d{1,6}: )?(?:exec: )?([\w@./+-]{1,80}): (?:command )?not found$/m,
    cause: ([, name]) => `The program ${name} could not be found. Add the package that has it to the dependencies of the app.`,
  },
  {
    pattern:
      /(?:DNSResolveFailed|ConnectionRefused|ConnectionTimeout) downloading (?:tarball|package manifest) (@?[\w./-]{1,200})/,
    cause: ([, name]) =>
      `The registry that has the package ${name} could not be reached. Try again. If that does not help, the operator has to check the network of this platform.`,
  },
  {
    pattern:
      /npm (?:error|ERR!) (?:code|errno) (?:EAI_AGAIN|ENOTFOUND|ETIMEDOUT|ECONNREFUSED|ECONNRESET)|Temporary failure in name resolution|dial tcp: lookup/,
    cause: () =>
      'A package registry could not be reached. Try again. If that does not help, the operator has to check the network of this platform.',
  },
];
