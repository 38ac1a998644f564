/** Finds the compilers and interpreters of the host, on the operator's PATH. */
import { access, readdir, realpath, stat } from 'node:fs/promises';
import { rcompare } from 'semver';
import { findExecutable } from '#shared/files/find-executable.ts';
import type { NodeToolchain, PythonToolchain, Toolchain } from './toolchain.ts';
import type { ToolchainMount } from './toolchain-mounts.ts';

/** Runs a program of the host: what it printed, trimmed, or undefined if it failed. */
export type Answer = (program: string, args: readonly string[]) => Promise<string | undefined>;

/** The Node.js of the host with its npm. Undefined without one that apps can use. */
export async function findHostNode(path: string, answer: Answer): Promise<NodeToolchain | undefined> {
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
    headers: (await hasHeaders(prefix)) ? prefix : undefined,
  };
}

async function hasHeaders(prefix: string): Promise<boolean> {
  return access(`${prefix}/include/node/node.h`).then(
    () => true,
    () => false,
  );
}

/** Every Python 3 that PATH, pyenv or uv has, in the order of preference: the one that `python3` is first, then the newest. */
export async function findHostPythons(
  env: Readonly<Record<string, string | undefined>>,
  path: string,
  answer: Answer,
): Promise<readonly PythonToolchain[]> {
  const programs = [await findExecutable('python3', path), ...(await listPythons(env, path))].filter(
    (found) => found !== undefined,
  );
  const found = new Map<string, PythonToolchain>();
  for (const program of programs) {
    const python = await probe(program, answer);
    if (python !== undefined && !found.has(python.version)) found.set(python.version, python);
  }
  const [first, ...others] = [...found.values()];
  return first === undefined ? [] : [first, ...others.sort((one, other) => rcompare(one.version, other.version))];
}

async function listPythons(env: Readonly<Record<string, string | undefined>>, path: string): Promise<readonly string[]> {
  const managed = [env['PYENV_ROOT'] ?? `${env['HOME']}/.pyenv`, `${env['HOME']}/.local/share/uv/python`];
  const roots = [`${managed[0]}/versions`, managed[1] ?? ''];
  const versions = roots.map(async (root) => (await listDirectory(root)).map((name) => `${root}/${name}/bin/python3`));
  // Shims of version managers would be asked about versions that they do not have.
  const directories = path.split(':').filter((directory) => directory.startsWith('/') && !directory.includes('shims'));
  const named = directories.map(async (directory) =>
    (await listDirectory(directory)).filter((name) => /^python3\.\d+$/.test(name)).map((name) => `${directory}/${name}`),
  );
  return (await Promise.all([...versions, ...named])).flat();
}

async function listDirectory(path: string): Promise<readonly string[]> {
  return readdir(path).catch(() => []);
}

async function probe(program: string, answer: Answer): Promise<PythonToolchain | undefined> {
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
print(json.dumps({'version': platform.python_version(), 'prefix': sys.base_prefix, 'executable': getattr(sys, '_base_executable', None) or sys.executable,
    'ensurepip': find_spec('ensurepip') is not None and find_spec('venv') is not None, 'pip': major}))
`;

/** The Go of the host. Undefined without one. */
export async function findHostGo(path: string, answer: Answer): Promise<Toolchain | undefined> {
  const program = await findExecutable('go', path);
  const said = program === undefined ? undefined : await answer(program, ['env', 'GOROOT', 'GOVERSION']);
  const [root, version] = said?.split('\n') ?? [];
  if (root === undefined || version === undefined) return undefined;
  return { version: version.replace(/^go/, ''), path: [`${root}/bin`], mounts: hostMounts(await realpath(root)) };
}

/** Every Rust of the host, the one of PATH first: rustup may have several. */
export async function findHostRusts(
  env: Readonly<Record<string, string | undefined>>,
  path: string,
  answer: Answer,
): Promise<readonly Toolchain[]> {
  const [compiler, linker] = [await findExecutable('rustc', path), await findExecutable('cc', '/usr/bin')];
  if (compiler === undefined || linker === undefined) return [];
  // What is on PATH may be rustup's shim, which has the toolchain elsewhere.
  const first = await answer(compiler, ['--print', 'sysroot']);
  const rustup = `${env['RUSTUP_HOME'] ?? `${env['HOME']}/.rustup`}/toolchains`;
  const roots = [...(first === undefined ? [] : [first]), ...(await listDirectory(rustup)).map((name) => `${rustup}/${name}`)];
  const found = new Map<string, Toolchain>();
  for (const root of roots) {
    const version = /^rustc (\S+)/.exec((await answer(`${root}/bin/rustc`, ['--version'])) ?? '')?.[1];
    const cargo = await findExecutable('cargo', `${root}/bin`);
    if (version !== undefined && cargo !== undefined && !found.has(version))
      found.set(version, { version, path: [`${root}/bin`], mounts: hostMounts(await realpath(root)) });
  }
  return [...found.values()];
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
