/** The compilers and interpreters that builds use: of the host, of the platform, and of the tool store. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { coerce, compare, rcompare, satisfies } from 'semver';
import { millisecondsPerHour } from '#shared/durations.ts';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import { isDebianTool } from './debian/debian-tools.ts';
import { findHostJavas, findHostJavaTool } from './host-java.ts';
import type { LanguageName } from './host-languages.ts';
import { findHostGo, findHostNode, findHostPythons, findHostRusts } from './host-toolchains.ts';
import { findLanguage, plainVersion } from './languages.ts';
import { fitsRust, toRustChannel } from './rust-versions.ts';
import type { DebianSystems, SystemBase } from './sources/debian-systems.ts';
import { programsOf, type StoredTool, type StoredToolName, targetOf } from './stored-tools.ts';
import type { ToolStore } from './tool-store.ts';
import type { JavaToolchain, NodeToolchain, PythonToolchain, Toolchain, VersionRequest } from './toolchain.ts';
import { partTargets, type ToolchainMount } from './toolchain-mounts.ts';
import { chooseVersion, newestOfMajors, toJavaRange, toPythonRange, toRange } from './versions.ts';

/** All of them throw BuildFailure when there is none that does. A version that is asked for is never replaced by another. */
export interface Toolchains {
  /** The platform's own Node.js or the host's where it fits, else one of the store. Each comes with an npm that runs on it. */
  findNode(request?: VersionRequest, options?: { readonly ofHost: boolean }): Promise<NodeToolchain>;
  /** A tool of the store, in the newest version that is asked for. Installs it. */
  findTool(name: StoredToolName, request: VersionRequest): Promise<Toolchain>;
  /**
   * A Python of the host where one fits, else one of the store, else one of Debian's packages.
   * @param requests all of them hold: of a file of pins, of the project
   */
  findPython(requests?: readonly VersionRequest[]): Promise<PythonToolchain>;
  /** The host's Go where it is of the release that is asked for, else one of the store. */
  findGo(request?: VersionRequest): Promise<Toolchain>;
  /** A JDK of the host, else one of Debian's packages: '17', '17.0.2', '>=11'. */
  findJava(request?: VersionRequest): Promise<JavaToolchain>;
  /** Of the host, for apps that bring no wrapper. */
  findJavaTool(name: 'mvn' | 'gradle'): Promise<Omit<Toolchain, 'version'>>;
  /** Ruby, PHP, Elixir and others that Debian's packages have, or the operator has installed. */
  findLanguage(name: LanguageName, request?: VersionRequest): Promise<Toolchain>;
  /**
   * A system with packages of Debian in place of the host's /usr. Installs it.
   * @param tools of the app: a toolchain of Debian's packages among them becomes a part of the system
   * @returns all tools, with the release of the packages
   */
  findSystem(packages: readonly string[], tools: readonly ToolchainMount[]): Promise<System>;
  /**
   * The host's Rust where it fits, else one of the store.
   * @param request a version, or the name of a channel
   */
  findRust(request?: VersionRequest): Promise<Toolchain>;
}

export interface System {
  /** 'bookworm' */
  readonly codename: string;
  readonly mounts: readonly ToolchainMount[];
}

export interface ToolchainsOptions {
  /** The operator's environment: PATH, and what the tools need to say where they live. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platformNodeVersion: string;
  readonly store: ToolStore;
  /** Undefined where apps cannot have packages of Debian. */
  readonly systems?: DebianSystems;
}

const run = promisify(execFile);

/** Opens the toolchains of this machine. */
export function openToolchains({ env, platformNodeVersion, store, systems }: ToolchainsOptions): Toolchains {
  const path = env.PATH ?? '/usr/local/bin:/usr/bin:/bin';
  const answer = async (program: string, args: readonly string[]): Promise<string | undefined> =>
    run(program, [...args], { env: env as NodeJS.ProcessEnv, timeout: 20_000 }).then(
      ({ stdout }) => stdout.trim(),
      () => undefined,
    );
  const hostNode = once(() => findHostNode(path, answer));
  const pythons = once(async () => {
    const found = await findHostPythons(env, path, answer);
    return isFilled(found) ? found : undefined;
  });
  const hostGo = once(() => findHostGo(path, answer));
  const rusts = once(async () => {
    const found = await findHostRusts(env, path, answer);
    return isFilled(found) ? found : undefined;
  });
  const javas = once(async () => {
    const found = await findHostJavas(env, path);
    return isFilled(found) ? found : undefined;
  });
  const platformNode: NodeToolchain = {
    version: platformNodeVersion,
    path: [directoryOf(partTargets.node)],
    mounts: [
      { kind: 'platform', name: 'node' },
      { kind: 'platform', name: 'node-headers' },
      { kind: 'platform', name: 'npm' },
    ],
    headers: directoryOf(partTargets['node-headers']),
  };
  const ensureStored = async (tool: StoredTool): Promise<Toolchain> => {
    await store.ensureTool(tool);
    return { version: tool.version, path: [programsOf(tool)], mounts: [{ kind: 'stored', ...tool }] };
  };
  // After a download that failed, so that each build does not wait for the next one.
  let preferDebianUntil = 0;
  const findTool: Toolchains['findTool'] = async (name, request) =>
    ensureStored({ name, version: await chooseStored(store, name, request) });
  const findStoredPython = async (
    found: readonly PythonToolchain[],
    [wanted, ...others]: readonly VersionRequest[],
  ): Promise<PythonToolchain> => {
    const ranges = [wanted, ...others].map((request) => toPythonRange(request?.version ?? '*') ?? '*');
    const versions = await store.listVersions('python');
    const fitting = versions.filter((version) => ranges.every((range) => satisfies(version, range)));
    const version = chooseVersion('*', fitting) ?? chooseVersion(ranges[0] ?? '*', versions);
    const has = found.map(({ version: present }) => present).sort(compare);
    const asked = `${wanted?.source} asks for Python ${wanted?.version}, and this platform has ${has.join(', ')}`;
    const fix = `Ask for one of them, or let its operator install it: uv python install ${wanted?.version}`;
    if (version === undefined) throw new BuildFailure(`${asked}. ${fix}`);
    const debian = chooseVersion(
      '*',
      (await listDebian('debian-python')).filter((each) => ranges.every((range) => satisfies(each, range))),
    );
    if (debian !== undefined && Date.now() < preferDebianUntil) return findDebianPython(debian);
    try {
      const stored = await ensureStored({ name: 'python', version });
      return { ...stored, executable: `${programsOf({ name: 'python', version })}/python3`, pip: true };
    } catch (error) {
      if (!(error instanceof BuildFailure)) throw error;
      preferDebianUntil = Date.now() + millisecondsPerHour;
      const fallback = debian === undefined ? undefined : await findDebianPython(debian).catch(() => undefined);
      if (fallback !== undefined) return fallback;
      throw new BuildFailure(`${asked}. ${error.message.replace(/ Try again.*/, '')} ${fix}`);
    }
  };
  const listDebian = (name: 'debian-python' | 'debian-java'): Promise<readonly string[]> =>
    store.listVersions(name).catch(() => []);
  /** Its programs are in the directories of the system. */
  const findDebianPython = async (version: string): Promise<PythonToolchain> => {
    const tool = { name: 'debian-python', version } as const;
    await store.ensureTool(tool);
    const plain = plainVersion(version);
    const executable = `/usr/bin/python${plain.split('.').slice(0, 2).join('.')}`;
    return { version: plain, executable, pip: false, path: [], mounts: [{ kind: 'stored', ...tool }] };
  };
  const findDebianJava = async (range: string): Promise<JavaToolchain | undefined> => {
    const version = chooseVersion(range, await listDebian('debian-java'));
    if (version === undefined) return undefined;
    const tool = { name: 'debian-java', version } as const;
    await store.ensureTool(tool);
    const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
    const home = `/usr/lib/jvm/java-${version.split('.')[0]}-openjdk-${architecture}`;
    return { version: plainVersion(version), home, path: [`${home}/bin`], mounts: [{ kind: 'stored', ...tool }] };
  };
  return {
    findTool,
    async findNode(request, { ofHost } = { ofHost: true }) {
      const range = request === undefined ? '*' : toRange(request.version);
      if (range === undefined) throw new BuildFailure(notAVersion('Node.js', request));
      const ours = [platformNode, ofHost ? await hostNode() : undefined].find(
        (node) => node !== undefined && satisfies(node.version, range),
      );
      if (ours !== undefined) return ours;
      const node = await findTool('node', request ?? { version: '*', source: '' });
      const npm = await findNpmFor(node.version, findTool);
      const root = `${targetOf({ name: 'node', version: node.version })}/node_modules/node-linux-${process.arch}`;
      return { version: node.version, path: [...node.path, ...npm.path], mounts: [...node.mounts, ...npm.mounts], headers: root };
    },
    async findPython(requests = []) {
      const found = await pythons();
      if (found === undefined)
        throw new BuildFailure(
          'No Python 3 with venv on this platform. Its operator can install it: apt-get install -y python3 python3-venv python3-pip',
        );
      return choosePython(found, requests) ?? findStoredPython(found, requests);
    },
    async findGo(request) {
      const found = await hostGo();
      if (found === undefined)
        throw new BuildFailure('No Go compiler on this platform. Its operator can install one: apt-get install -y golang-go');
      const range = request === undefined ? '*' : toRange(request.version);
      if (range === undefined) throw new BuildFailure(notAVersion('Go', request));
      return satisfies(found.version, range) || request === undefined ? found : findTool('go', request);
    },
    async findJava(request) {
      const found = (await javas()) ?? [];
      const range = request === undefined ? '*' : toJavaRange(request.version);
      if (range === undefined) throw new BuildFailure(notAVersion('Java', request));
      const chosen =
        found.find(({ version }) => satisfies(coerce(version)?.version ?? '0.0.0', range)) ?? (await findDebianJava(range));
      if (chosen !== undefined) return chosen;
      if (found.length === 0)
        throw new BuildFailure('No JDK on this platform. Its operator can install one: apt-get install -y default-jdk-headless');
      const has = found.map(({ version }) => version).join(', ');
      throw new BuildFailure(
        `${request?.source} asks for Java ${request?.version}, and this platform has ${has}. Ask for one of them, or let its operator install it into /usr/lib/jvm.`,
      );
    },
    async findJavaTool(name) {
      const found = await findHostJavaTool(name, path);
      if (found !== undefined) return found;
      throw new BuildFailure(
        `No ${name} on this platform. Commit a wrapper, as ${name === 'mvn' ? '`mvn wrapper:wrapper`' : '`gradle wrapper`'} makes it, or let its operator install it: apt-get install -y ${name === 'mvn' ? 'maven' : 'gradle'}`,
      );
    },
    async findSystem(packages, tools) {
      if (systems === undefined) throw new BuildFailure('Apps cannot have packages of Debian on this platform.');
      const base = tools.find((mount) => mount.kind === 'stored' && isDebianTool(mount.name));
      const { version, codename } = await systems.planSystem(packages, base as SystemBase | undefined);
      const tool = { name: 'debian-system', version } as const;
      await store.ensureTool(tool);
      return { codename, mounts: [...tools.filter((mount) => mount !== base), { kind: 'stored', ...tool }] };
    },
    findLanguage: (name, request) => findLanguage(name, request, { store, env }),
    async findRust(request) {
      const found = await rusts();
      if (found === undefined)
        throw new BuildFailure(
          'No Rust compiler with a linker on this platform. Its operator can install them: apt-get install -y cargo gcc',
        );
      const chosen = found.find(({ version }) => request === undefined || fitsRust(version, request.version));
      if (chosen !== undefined || request === undefined) return chosen ?? firstOf(found);
      const channel = toRustChannel(request.version);
      const [version] = await store.listVersions('rust', channel);
      if (version !== undefined && fitsRust(version, request.version)) return ensureStored({ name: 'rust', version });
      const has = found.map(({ version: present }) => present).join(', ');
      throw new BuildFailure(
        `${request.source} asks for Rust ${request.version}, and this platform has ${has}. Ask for one of them, or let its operator install it: rustup toolchain install ${channel}`,
      );
    },
  };
}

/** Later requests are of files that say what a project is compatible with; the first one that is exact decides. */
function choosePython(found: readonly PythonToolchain[], requests: readonly VersionRequest[]): PythonToolchain | undefined {
  const [wanted, ...others] = requests;
  if (wanted === undefined) return found[0];
  const range = toPythonRange(wanted.version);
  if (range === undefined) throw new BuildFailure(notAVersion('Python', wanted));
  const fitting = found.filter(({ version }) => satisfies(version, range));
  const rest = others.filter((request) =>
    fitting.some(({ version }) => satisfies(version, toPythonRange(request.version) ?? '*')),
  );
  const newest = ['latest', '*'].includes(wanted.version);
  const sorted = newest ? [...fitting].sort((one, other) => rcompare(one.version, other.version)) : fitting;
  return sorted.find(({ version }) => rest.every((request) => satisfies(version, toPythonRange(request.version) ?? '*')));
}

function firstOf<Found>(found: readonly [Found, ...Found[]]): Found {
  return found[0];
}

const labels: Partial<Record<StoredToolName, string>> = { node: 'Node.js', go: 'Go', 'yarn-berry': 'Yarn', yarn: 'Yarn' };

async function chooseStored(store: ToolStore, name: StoredToolName, request: VersionRequest): Promise<string> {
  const label = labels[name] ?? name;
  const range = toRange(request.version);
  if (range === undefined) throw new BuildFailure(notAVersion(label, request));
  const versions = await store.listVersions(name);
  const version = chooseVersion(range, versions);
  if (version !== undefined) return version;
  if (versions.length === 0)
    throw new BuildFailure(
      `${request.source} asks for ${label} ${request.version}, which is not on this platform, and its package registry could not be reached. Try again.`,
    );
  throw new BuildFailure(
    `${request.source} asks for ${label} ${request.version}, which does not exist. The newest are ${newestOfMajors(versions, 5).join(', ')}.`,
  );
}

function notAVersion(label: string, request: VersionRequest | undefined): string {
  const version = request?.version ?? '';
  const shown = version.length > 80 ? `${version.slice(0, 80)}…` : version;
  return `${request?.source ?? 'The app'} asks for ${label} "${shown}", which is no version or range of versions.`;
}

/** The npm that comes with the platform needs a recent Node.js; older ones get the last npm that runs on them. */
const npmByNode = [
  { node: '^20.17.0 || >=22.9.0' },
  { node: '>=18.17.0', npm: '10' },
  { node: '^14.17.0 || ^16.13.0 || >=18', npm: '9' },
  { node: '>=12.22', npm: '8.19.4' },
  { node: '*', npm: '6' },
] as const;

async function findNpmFor(node: string, findTool: Toolchains['findTool']): Promise<Pick<Toolchain, 'path' | 'mounts'>> {
  const paired = npmByNode.find(({ node: range }) => satisfies(node, range));
  if (paired === undefined || !('npm' in paired))
    return { path: [directoryOf(partTargets.node)], mounts: [{ kind: 'platform', name: 'npm' }] };
  return findTool('npm', { version: paired.npm, source: `Node.js ${node}` });
}

function directoryOf(file: string): string {
  return file.slice(0, file.lastIndexOf('/'));
}

function isFilled<Item>(items: readonly Item[]): items is readonly [Item, ...Item[]] {
  return items.length > 0;
}

/** Asked once, and again only after it found nothing (the operator may have installed it since). */
function once<T>(find: () => Promise<T | undefined>): () => Promise<T | undefined> {
  let pending: Promise<T | undefined> | undefined;
  return async () => {
    pending ??= find();
    const found = await pending;
    if (found === undefined) pending = undefined;
    return found;
  };
}
