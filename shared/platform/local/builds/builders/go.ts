import type { Builder } from './builder.ts';
import type { SourceTree } from './source-tree.ts';

export const goBuilder: Builder = {
  name: 'go',
  looksFor: 'go.mod (Go)',
  async detect(source) {
    return (await source.hasFile('go.mod')) ? { what: 'Go app', why: 'go.mod' } : undefined;
  },
  async plan(source, context) {
    const go = await context.toolchains.findGo();
    const before = new Set(await source.list('bin'));
    return {
      notes: [`Using Go ${go.version}`],
      steps: [{ title: `go build -o bin/ ./..., cache ${context.cache}`, argv: ['go', 'build', '-o', 'bin/', './...'] }],
      // Without -modcacherw Go's module cache is read-only even for its owner, who could then not delete it.
      env: { GOPATH: '/tmp/go', GOMODCACHE: '/cache/go-modules', GOCACHE: '/cache/go-build', GOFLAGS: '-modcacherw' },
      path: ['/app/bin', ...go.path],
      toolchain: go.mounts,
      cacheDirectories: ['go-modules', 'go-build'],
      runtimeEnv: {},
      async defaultProcesses(built) {
        const programs = await findPrograms(built, before);
        const module = /^module\s+(?:\S*\/)?([^/\s]+)/m.exec((await source.readText('go.mod')) ?? '')?.[1];
        const chosen =
          programs.length === 1 ? programs[0] : programs.find((name) => name === 'web' || name === 'server' || name === module);
        return chosen === undefined ? {} : { web: `bin/${chosen}` };
      },
      processHint:
        'Nothing in this module is `package main`, or several are and none is called web or server. Add a Procfile with a line as: web: bin/<program>',
    };
  },
};

const elf = [0x7f, 0x45, 0x4c, 0x46];

async function findPrograms(built: SourceTree, before: ReadonlySet<string>): Promise<readonly string[]> {
  const programs: string[] = [];
  for (const name of await built.list('bin')) {
    const start = await built.readBytes(`bin/${name}`, elf.length);
    if (!before.has(name) && elf.every((byte, index) => start?.[index] === byte)) programs.push(name);
  }
  return programs.filter((name) => /^[\w.-]+$/.test(name));
}
