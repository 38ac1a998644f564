import type { Builder } from './builder.ts';
import type { SourceTree } from './source-tree.ts';

export const rustBuilder: Builder = {
  name: 'rust',
  looksFor: 'Cargo.toml (Rust)',
  async detect(source) {
    return (await source.hasFile('Cargo.toml')) ? { what: 'Rust app', why: 'Cargo.toml' } : undefined;
  },
  async plan(source, context) {
    const rust = await context.toolchains.findRust();
    const locked = await source.hasFile('Cargo.lock');
    const install = [
      'cargo',
      'install',
      '--path',
      '.',
      '--root',
      '/app',
      '--no-track',
      '--force',
      ...(locked ? ['--locked'] : []),
    ];
    return {
      notes: [
        `Using Rust ${rust.version}`,
        ...(locked ? [] : ['No Cargo.lock: versions may differ from build to build. Commit one to fix them.']),
      ],
      steps: [{ title: `cargo install --path ., cache ${context.cache}`, argv: install }],
      env: { CARGO_HOME: '/cache/cargo', CARGO_TARGET_DIR: '/cache/cargo-target', CARGO_TERM_COLOR: 'never' },
      path: ['/app/bin', ...rust.path],
      toolchain: rust.mounts,
      cacheDirectories: ['cargo', 'cargo-target'],
      runtimeEnv: {},
      defaultProcesses: (built) => findPrograms(built, source),
      processHint:
        'This package has no program, or several and none is called web, server or like the package. Add a Procfile with a line as: web: bin/<program>',
    };
  },
};

async function findPrograms(built: SourceTree, source: SourceTree): Promise<Readonly<Record<string, string>>> {
  const programs = (await built.list('bin')).filter((name) => /^[\w.-]+$/.test(name));
  const packageName = /^name\s*=\s*"([^"]+)"/m.exec((await source.readText('Cargo.toml')) ?? '')?.[1];
  const chosen =
    programs.length === 1 ? programs[0] : programs.find((name) => name === 'web' || name === 'server' || name === packageName);
  return chosen === undefined ? {} : { web: `bin/${chosen}` };
}
