/** The compilers and interpreters of the host, found on the operator's PATH and shown to builds read-only. */
import { execFile } from 'node:child_process';
import { realpath, stat } from 'node:fs/promises';
import { promisify } from 'node:util';
import { satisfies, validRange } from 'semver';
import { findExecutable } from '#shared/files/find-executable.ts';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import { partTargets, type ToolchainMount } from './toolchain-mounts.ts';

export interface Toolchain {
  readonly version: string;
  /** Directories of its programs, for PATH. */
  readonly path: readonly string[];
  readonly mounts: readonly ToolchainMount[];
}

export interface PythonToolchain extends Toolchain {
  readonly executable: string;
  /** Whether its own pip can install into another environment, which spares each one a copy of pip. */
  readonly pip: boolean;
}

/** All of them throw BuildFailure when there is none that does. */
export interface Toolchains {
  /** The host's Node where it satisfies `range`, else the platform's own. npm comes with either. */
  findNode(range: string | undefined): Promise<Toolchain>;
  findPython(): Promise<PythonToolchain>;
  findGo(): Promise<Toolchain>;
  findRust(): Promise<Toolchain>;
}

const run = promisify(execFile);

/** Characters. A range takes longer to compare the longer it is. */
const longestRange = 256;

/** @param env the operator's environment: PATH, and what the tools need to say where they live */
export function openToolchains(env: Readonly<Record<string, string | undefined>>, platformNodeVersion: string): Toolchains {
  const path = env.PATH ?? '/usr/local/bin:/usr/bin:/bin';
  const answer = async (program: string, args: readonly string[]): Promise<string | undefined> =>
    run(program, [...args], { env: env as NodeJS.ProcessEnv, timeout: 20_000 }).then(
      ({ stdout }) => stdout.trim(),
      () => undefined,
    );
  const hostNode = once(() => findHostNode(path, answer));
  const python = once(() => findHostPython(path, answer));
  const go = once(() => findHostGo(path, answer));
  const rust = once(() => findHostRust(path, answer));
  const platformNode: Toolchain = {
    version: platformNodeVersion,
    path: [directoryOf(partTargets.node)],
    mounts: [
      { kind: 'platform', name: 'node' },
      { kind: 'platform', name: 'npm' },
    ],
  };
  return {
    async findNode(range) {
      if (range !== undefined && range.length > longestRange)
        throw new BuildFailure(`"engines.node" in package.json is longer than ${longestRange} characters.`);
      if (range !== undefined && validRange(range) === null)
        throw new BuildFailure(`"engines.node" in package.json is not a version range: ${range}`);
      const candidates = [await hostNode(), platformNode].filter((node) => node !== undefined);
      const found = candidates.find((node) => range === undefined || satisfies(node.version, range));
      if (found !== undefined) return found;
      throw new BuildFailure(
        `package.json asks for Node.js ${range}, and this platform has ${candidates.map((node) => node.version).join(' and ')}. Change "engines.node" to one that includes either.`,
      );
    },
    async findPython() {
      const found = await python();
      if (found !== undefined) return found;
      throw new BuildFailure(
        'No Python 3 with venv on this platform. Its operator can install it: apt-get install -y python3 python3-venv python3-pip',
      );
    },
    async findGo() {
      const found = await go();
      if (found !== undefined) return found;
      throw new BuildFailure('No Go compiler on this platform. Its operator can install one: apt-get install -y golang-go');
    },
    async findRust() {
      const found = await rust();
      if (found !== undefined) return found;
      throw new BuildFailure(
        'No Rust compiler with a linker on this platform. Its operator can install them: apt-get install -y cargo gcc',
      );
    },
  };
}

type Answer = (program: string, args: readonly string[]) => Promise<string | undefined>;

async function findHostNode(path: string, answer: Answer): Promise<Toolchain | undefined> {
  const [node, npm] = [await findExecutable('node', path), await findExecutable('npm', path)];
  if (node === undefined || npm === undefined) return undefined;
  const [prefix, npmPrefix] = [installPrefix(await realpath(node)), installPrefix(await realpath(npm))];
  // A node that is only there because our own start put it on PATH is the platform's, and comes as such.
  if (
    prefix === undefined ||
    npmPrefix === undefined ||
    prefix.includes('/node_modules/') ||
    npmPrefix.includes('/node_modules/')
  )
    return undefined;
  const version = (await answer(node, ['--version']))?.replace(/^v/, '');
  if (version === undefined) return undefined;
  const visible = [prefix, npmPrefix, '/usr'].some((root) => npm.startsWith(`${root}/`));
  const npmDirectory = directoryOf(visible ? npm : await realpath(npm));
  return {
    version,
    path: [...new Set([directoryOf(await realpath(node)), npmDirectory])],
    mounts: [...(await partMounts(prefix)), ...(await partMounts(npmPrefix))],
  };
}

async function findHostPython(path: string, answer: Answer): Promise<PythonToolchain | undefined> {
  const program = await findExecutable('python3', path);
  if (program === undefined) return undefined;
  // What is on PATH may be a shim; the interpreter itself knows where it lives.
  const said = await answer(program, ['-c', probePython]);
  if (said === undefined) return undefined;
  const facts = JSON.parse(said) as { version: string; prefix: string; executable: string; ensurepip: boolean; pip: number };
  const pip = facts.pip >= 23;
  if (!facts.ensurepip && !pip) return undefined;
  if (facts.prefix !== '/usr' && holdsMoreThanAToolchain(facts.prefix)) return undefined;
  return {
    version: facts.version,
    executable: facts.executable,
    pip,
    path: [directoryOf(facts.executable)],
    mounts: await partMounts(facts.prefix),
  };
}

const probePython = `
import json, platform, sys
from importlib.util import find_spec
try:
    import pip
    major = int(pip.__version__.split('.')[0])
except ImportError:
    major = 0
print(json.dumps({'version': platform.python_version(), 'prefix': sys.base_prefix, 'executable': sys._base_executable,
    'ensurepip': find_spec('ensurepip') is not None and find_spec('venv') is not None, 'pip': major}))
`;

async function findHostGo(path: string, answer: Answer): Promise<Toolchain | undefined> {
  const program = await findExecutable('go', path);
  const said = program === undefined ? undefined : await answer(program, ['env', 'GOROOT', 'GOVERSION']);
  const [root, version] = said?.split('\n') ?? [];
  if (root === undefined || version === undefined) return undefined;
  return { version: version.replace(/^go/, ''), path: [`${root}/bin`], mounts: hostMounts(await realpath(root)) };
}

async function findHostRust(path: string, answer: Answer): Promise<Toolchain | undefined> {
  const [compiler, linker] = [await findExecutable('rustc', path), await findExecutable('cc', '/usr/bin')];
  if (compiler === undefined || linker === undefined) return undefined;
  // What is on PATH may be rustup's shim, which has the toolchain elsewhere.
  const [said, root] = [await answer(compiler, ['--version']), await answer(compiler, ['--print', 'sysroot'])];
  const version = /^rustc (\S+)/.exec(said ?? '')?.[1];
  if (version === undefined || root === undefined || (await findExecutable('cargo', `${root}/bin`)) === undefined)
    return undefined;
  return { version, path: [`${root}/bin`], mounts: hostMounts(await realpath(root)) };
}

/** `/opt/x` of `/opt/x/bin/node`, `/usr` of what lies below it. Undefined for a program outside any such layout. */
function installPrefix(program: string): string | undefined {
  if (program.startsWith('/usr/')) return '/usr';
  const prefix = /^(.+?)\/(?:bin|lib)\//.exec(program)?.[1];
  return prefix === undefined || holdsMoreThanAToolchain(prefix) ? undefined : prefix;
}

/** Somebody's home (`~/bin/node`) or a top-level directory: tenants must not see the rest of it. */
function holdsMoreThanAToolchain(prefix: string): boolean {
  return /^\/[^/]*$|^\/home\/[^/]+$/.test(prefix);
}

/** /usr is in every sandbox already. */
function hostMounts(prefix: string): readonly ToolchainMount[] {
  return prefix === '/usr' || prefix.startsWith('/usr/') ? [] : [{ kind: 'host', path: prefix }];
}

/**
 * The parts of a prefix that programs and libraries are in: its `etc`, which npm reads, may contain credentials of the operator, and so
 * may its `pip.conf`.
 */
async function partMounts(prefix: string): Promise<readonly ToolchainMount[]> {
  const parts = ['bin', 'include', 'lib', 'lib64', 'libexec', 'share'].map((part) => `${prefix}/${part}`);
  const found = await Promise.all(parts.map((part) => stat(part).catch(() => undefined)));
  return parts.filter((_, index) => found[index]?.isDirectory()).flatMap(hostMounts);
}

function directoryOf(file: string): string {
  return file.slice(0, file.lastIndexOf('/'));
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
