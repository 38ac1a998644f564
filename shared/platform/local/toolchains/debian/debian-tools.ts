/** Languages that Debian has, and the packages that make up their toolchains (decision 40). */

/** A release of Debian. Its packages get security updates. */
export interface DebianRelease {
  readonly codename: string;
  readonly ruby: string;
  readonly php: string;
}

/** Newest first. */
export const debianReleases: readonly DebianRelease[] = [
  { codename: 'trixie', ruby: '3.3', php: '8.4' },
  { codename: 'bookworm', ruby: '3.1', php: '8.2' },
  { codename: 'bullseye', ruby: '2.7', php: '7.4' },
];

export const debianToolNames = ['ruby', 'php', 'elixir', 'erlang', 'debian-python', 'debian-java', 'debian-system'] as const;
export type DebianToolName = (typeof debianToolNames)[number];

export function isDebianTool(name: string): name is DebianToolName {
  return (debianToolNames as readonly string[]).includes(name);
}

/** What a toolchain consists of in one release. */
export interface DebianOffer {
  readonly codename: string;
  /** Its version is that of the toolchain. */
  readonly main: string;
  /** All others by name. Those that the release does not have are left out. */
  readonly others: readonly string[];
}

/** What scripts and build tools of any language expect. */
const common = ['ca-certificates', 'curl', 'git', 'netbase', 'procps', 'tzdata', 'unzip', 'xz-utils'] as const;

/** For extensions in C: a compiler, and the libraries that extensions of the usual packages link to. */
const compilers = [
  'build-essential', 'pkg-config', 'python3-minimal', 'default-libmysqlclient-dev', 'libffi-dev', 'libgmp-dev', 'libicu-dev', 'libpq-dev',
  'libreadline-dev', 'libsqlite3-dev', 'libssl-dev', 'libxml2-dev', 'libxslt1-dev', 'libyaml-dev', 'zlib1g-dev',
] as const; // biome-ignore format: a list of words

/** Extensions that frameworks of PHP ask for. The names of some begin with the version, of others with php alone. */
const phpExtensions = [
  'apcu', 'bcmath', 'curl', 'gd', 'gmp', 'imagick', 'intl', 'json', 'mbstring', 'mysql', 'opcache', 'pgsql', 'readline', 'redis', 'soap',
  'sqlite3', 'xml', 'zip',
] as const; // biome-ignore format: a list of words

const erlangParts = [
  'asn1', 'crypto', 'dev', 'eunit', 'inets', 'mnesia', 'os-mon', 'parsetools', 'public-key', 'runtime-tools', 'ssh', 'ssl',
  'syntax-tools', 'tools', 'xmerl',
] as const; // biome-ignore format: a list of words

/** Versions that no stable release has come from the next one, and Java 8 from the one after that. */
const pythons = [
  ['forky', '3.15'],
  ['forky', '3.14'],
  ['trixie', '3.13'],
  ['bookworm', '3.11'],
  ['bullseye', '3.9'],
] as const;
const javas = [
  ['trixie', '25'],
  ['trixie', '21'],
  ['bookworm', '17'],
  ['bullseye', '11'],
  ['sid', '8'],
] as const;

/** What an app finds beside the packages that it asks for, where its language is not of Debian's packages. */
export const systemPackages: readonly string[] = [
  ...compilers,
  ...common,
  'python3',
  'python3-dev',
  'python3-venv',
  'python3-pip',
];

/** Where a toolchain comes from, in the order of preference. */
export function offersOf(tool: DebianToolName): readonly DebianOffer[] {
  switch (tool) {
    case 'debian-python':
      return pythons.map(([codename, version]) => ({
        codename,
        main: `python${version}`,
        others: ['venv', 'dev'].map((part) => `python${version}-${part}`).concat(compilers, common),
      }));
    case 'debian-java':
      return javas.map(([codename, version]) => ({
        codename,
        main: `openjdk-${version}-jdk-headless`,
        others: ['maven', ...common],
      }));
    // Each is made for an app: see debian-systems.ts.
    case 'debian-system':
      return [];
    default:
      return debianReleases.map((release) => ({ codename: release.codename, ...packagesOf(tool, release) }));
  }
}

function packagesOf(
  tool: Exclude<DebianToolName, 'debian-python' | 'debian-java' | 'debian-system'>,
  { ruby, php }: DebianRelease,
): Omit<DebianOffer, 'codename'> {
  const erlang = erlangParts.map((part) => `erlang-${part}`);
  switch (tool) {
    case 'ruby':
      return {
        main: `ruby${ruby}`,
        others: ['ruby', `ruby${ruby}-dev`, 'ruby-dev', 'bundler', 'imagemagick', 'libjemalloc2', ...compilers, ...common],
      };
    case 'php':
      return {
        main: `php${php}-cli`,
        others: [
          `php${php}-fpm`,
          ...phpExtensions.flatMap((name) => [`php${php}-${name}`, `php-${name}`]),
          'composer',
          'nginx-light',
          ...common,
        ],
      };
    case 'elixir':
      return { main: 'elixir', others: ['erlang-base', ...erlang, 'build-essential', ...common] };
    case 'erlang':
      return { main: 'erlang-base', others: [...erlang, ...common] };
  }
}

/** Debian's version as one of semver, which ranges are compared with: '3.1.2-7+deb12u1' → '3.1.2+7.deb12u1'. */
export function toSemver(debianVersion: string): string | undefined {
  const [, version = '', revision = ''] = /^(?:\d+:)?(\d+(?:\.\d+)*)(.*)$/.exec(debianVersion) ?? [];
  const [major, minor = '0', patch = '0', ...rest] = version.split('.');
  if (major === undefined || major === '') return undefined;
  const build = [...rest, ...revision.split(/[^0-9A-Za-z]+/)].filter((part) => part !== '').join('.');
  return `${major}.${minor}.${patch}${build === '' ? '' : `+${build}`}`;
}
