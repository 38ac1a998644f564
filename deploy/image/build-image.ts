import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, cp, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { StartError } from '#deploy/host/start-error.ts';
import {
  contextFiles,
  isPartOfImage,
  isSuperfluous,
  planBase,
  planBuild,
  planDockerfile,
  superfluousPackages,
} from '#deploy/image/image-plan.ts';

/** What is built. */
export interface ImageOptions {
  /** The checkout, with its packages installed. */
  root: string;
  /** Name of the image: 'registry.example.com/paas:0.1.0'. */
  tag: string;
  /** See `planDockerfile`. */
  base: string | undefined;
  /** 'buildah', 'docker' or 'podman'. */
  program: string;
  report(line: string): void;
}

/**
 * Builds the container image of the control plane.
 * @throws StartError for a program that is missing or fails, with the end of its output
 */
export async function buildImage({ root, tag, base, program, report }: ImageOptions): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'paas-image-'));
  try {
    const platform = join(directory, contextFiles.platform);
    await copyPlatform(root, platform);
    report('Installing its packages…');
    await installPackages(root, platform);
    if (base === undefined) {
      report('Fetching its Debian packages…');
      await runProgram('mmdebstrap', planBase(join(directory, contextFiles.base)));
    }
    await writeFile(join(directory, contextFiles.dockerfile), planDockerfile(base));
    report(`Building ${tag}…`);
    await runProgram(program, planBuild(directory, tag));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function copyPlatform(root: string, target: string): Promise<void> {
  await mkdir(target);
  for (const name of await readdir(root)) {
    if (!isPartOfImage(name)) continue;
    const filter = (source: string): boolean => isPartOfImage(relative(root, source));
    await cp(join(root, name), join(target, name), { recursive: true, filter });
  }
  // Whoever builds may have kept the checkout from others.
  await makeReadable(target);
}

async function installPackages(root: string, target: string): Promise<void> {
  const inputs = ['bun.lockb', 'bunfig.toml', 'patches'];
  for (const name of inputs) await cp(join(root, name), join(target, name), { recursive: true });
  // Copies: links would lead to the files that other checkouts use.
  const install = ['install', '--production', '--frozen-lockfile', '--ignore-scripts', '--backend=copyfile', '--cwd', target];
  await runProgram(join(root, 'node_modules/.bin/bun'), install);
  for (const name of inputs) await rm(join(target, name), { recursive: true });
  const modules = join(target, 'node_modules');
  for (const name of superfluousPackages) await rm(join(modules, name), { recursive: true, force: true });
  for (const entry of await readdir(modules, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile() && isSuperfluous(relative(modules, path))) await rm(path);
  }
  const node = join(modules, `node-${process.platform}-${process.arch}`, 'bin/node');
  await runProgram('strip', [node]);
  await makeReadable(modules);
}

/** For the user of the image, who is another one. */
async function makeReadable(directory: string): Promise<void> {
  await chmod(directory, 0o755);
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isDirectory()) await chmod(path, 0o755);
    else if (entry.isFile()) await chmod(path, isProgram(path) ? 0o755 : 0o644);
  }
}

const isProgram = (path: string): boolean => path.endsWith('/bin/node');

const packagesOf: Readonly<Record<string, string>> = { strip: 'binutils' };
const shownLines = 20;

async function runProgram(command: string, args: readonly string[]): Promise<void> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-100_000);
    });
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    if (code === 0) return;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new StartError(`${command} is not installed. On Debian: apt-get install -y ${packagesOf[command] ?? command}`);
  }
  throw new StartError(`${command} ${args[0]} has failed:\n${output.trimEnd().split('\n').slice(-shownLines).join('\n')}`);
}
