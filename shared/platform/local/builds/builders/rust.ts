import { parse } from 'smol-toml';
import { z } from 'zod';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import type { VersionRequest } from '../../toolchains/toolchain.ts';
import type { BuildStep } from '../plans/build-plan.ts';
import type { Builder } from '../plans/builder.ts';
import { chooseProgram } from '../plans/choose-program.ts';
import { describeVersion } from '../plans/describe-version.ts';
import { expandDirectories } from '../plans/expand-directories.ts';
import type { SourceTree } from '../plans/source-tree.ts';
import type { VersionPins } from '../plans/version-pins.ts';

const manifestSchema = z.looseObject({
  package: z
    .looseObject({ name: z.string().optional(), 'rust-version': z.unknown().optional(), 'default-run': z.string().optional() })
    .optional(),
  bin: z.array(z.looseObject({})).optional(),
  dependencies: z.record(z.string(), z.unknown()).optional(),
  workspace: z
    .looseObject({ members: z.array(z.string()).optional(), 'default-members': z.array(z.string()).optional() })
    .optional(),
});
type Manifest = z.infer<typeof manifestSchema>;

export const rustBuilder: Builder = {
  name: 'rust',
  looksFor: 'Cargo.toml (Rust)',
  async detect(source) {
    return (await source.hasFile('Cargo.toml')) ? { what: 'Rust app', why: 'Cargo.toml' } : undefined;
  },
  async plan(source, context) {
    const manifest = (await readManifest(source, '')) ?? {};
    const request = await findRustRequest(source, manifest, context.pins);
    const rust = await context.toolchains.findRust(request);
    const locked = await source.hasFile('Cargo.lock');
    const crates = await listCrates(source, manifest);
    return {
      notes: [
        describeVersion('Rust', rust.version, request),
        ...(locked ? [] : ['No Cargo.lock: versions may differ from build to build. Commit one to fix them.']),
      ],
      steps: crates.map((directory) => install(directory, { locked, cache: context.cache })),
      env: { CARGO_HOME: '/cache/cargo', CARGO_TARGET_DIR: '/cache/cargo-target', CARGO_TERM_COLOR: 'never' },
      path: ['/app/bin', ...rust.path],
      toolchain: rust.mounts,
      cacheDirectories: ['cargo', 'cargo-target'],
      systemPackages: await findRustLibraries(source),
      runtimeEnv: {},
      defaultProcesses: (built) => findProcesses(built, manifest, context.env),
      processHint:
        'This package has no program, or several and none is called web, server or like the package. Add a Procfile with a line as: web: bin/<program>',
    };
  },
};

/** Packages of Debian by the crates that link to them. */
const libraries = [
  ['openssl-sys', 'libssl-dev'],
  ['pq-sys', 'libpq-dev'],
  ['mysqlclient-sys', 'default-libmysqlclient-dev'],
] as const;

async function findRustLibraries(source: SourceTree): Promise<readonly string[]> {
  const lock = (await source.readText('Cargo.lock')) ?? '';
  // OpenSSL is compiled from its sources where an app asks for that.
  if (lock.includes('name = "openssl-src"')) return [];
  return libraries.flatMap(([crate, library]) => (lock.includes(`name = "${crate}"`) ? [library] : []));
}

function install(directory: string, { locked, cache }: { locked: boolean; cache: string }): BuildStep {
  const flags = ['--root', '/app', '--no-track', '--force', ...(locked ? ['--locked'] : [])];
  return {
    title: `cargo install --path ${directory}, cache ${cache}`,
    argv: ['cargo', 'install', '--path', directory, ...flags],
  };
}

/** The oldest Rust of "rust-version" is the least; other files name exactly one. */
async function findRustRequest(source: SourceTree, manifest: Manifest, pins: VersionPins): Promise<VersionRequest | undefined> {
  for (const file of ['rust-toolchain.toml', 'rust-toolchain']) {
    const text = await source.readText(file);
    const version =
      /^[ \t]*channel[ \t]{0,9}=[ \t]{0,9}["']([^"'\n]{1,80})/m.exec(text ?? '')?.[1] ??
      /^[\w.-]{1,80}$/.exec(text?.trim() ?? '')?.[0];
    if (version !== undefined) return { version, source: file };
  }
  const least = manifest.package?.['rust-version'];
  return (
    pins.get('rust') ??
    (typeof least === 'string' ? { version: `>=${least}`, source: '"rust-version" in Cargo.toml' } : undefined)
  );
}

/** Directories of the packages that have programs. */
async function listCrates(source: SourceTree, manifest: Manifest): Promise<readonly string[]> {
  if (manifest.package !== undefined) return ['.'];
  const patterns = manifest.workspace?.['default-members'] ?? manifest.workspace?.members ?? [];
  const directories = (await Promise.all(patterns.map((pattern) => expandDirectories(source, pattern)))).flat();
  const crates: string[] = [];
  for (const directory of directories) {
    const found = await readManifest(source, directory);
    if (found?.package === undefined) continue;
    const bins = found.bin !== undefined || (await source.list(`${directory}/src/bin`)).length > 0;
    if (bins || (await source.hasFile(`${directory}/src/main.rs`))) crates.push(directory);
  }
  if (crates.length === 0) throw new BuildFailure('No package of the workspace in Cargo.toml has a program (src/main.rs).');
  return crates;
}

async function readManifest(source: SourceTree, directory: string): Promise<Manifest | undefined> {
  const path = directory === '' ? 'Cargo.toml' : `${directory}/Cargo.toml`;
  const text = await source.readText(path);
  if (text === undefined) return undefined;
  try {
    return manifestSchema.parse(parse(text));
  } catch (error) {
    const reason = error instanceof z.ZodError ? error.issues[0]?.message : (error as Error).message.split('\n')[0];
    throw new BuildFailure(`${path} is not valid: ${reason}`);
  }
}

async function findProcesses(
  built: SourceTree,
  manifest: Manifest,
  env: Readonly<Record<string, string>>,
): Promise<Readonly<Record<string, string>>> {
  const crate = manifest.package;
  const programs = (await built.list('bin')).filter((name) => /^[\w.-]+$/.test(name));
  const wanted = env['RAILPACK_RUST_BIN'] ?? env['NIXPACKS_RUST_BIN'] ?? crate?.['default-run'];
  const chosen = chooseProgram(programs, [wanted, crate?.name]);
  if (chosen === undefined) return {};
  // Rocket has variables of its own for its address.
  const rocket = manifest.dependencies?.['rocket'] === undefined ? '' : 'ROCKET_ADDRESS=0.0.0.0 ROCKET_PORT=$PORT ';
  return { web: `${rocket}bin/${chosen}` };
}
