import type { VersionRequest } from '../../toolchains/toolchain.ts';
import type { Builder } from '../plans/builder.ts';
import { chooseProgram } from '../plans/choose-program.ts';
import { describeVersion } from '../plans/describe-version.ts';
import type { SourceTree } from '../plans/source-tree.ts';
import type { VersionPins } from '../plans/version-pins.ts';

export const goBuilder: Builder = {
  name: 'go',
  looksFor: 'go.mod, go.work or main.go (Go)',
  async detect(source) {
    for (const why of ['go.mod', 'go.work', 'main.go']) if (await source.hasFile(why)) return { what: 'Go app', why };
    return undefined;
  },
  async plan(source, context) {
    const request = await findGoRequest(source, context.pins);
    const go = await context.toolchains.findGo(request);
    const before = new Set(await source.list('bin'));
    const packages = await listPackages(source);
    return {
      notes: [describeVersion('Go', go.version, request)],
      steps: [
        {
          title: `go build -o bin/ ${packages.join(' ')}, cache ${context.cache}`,
          argv: ['go', 'build', '-o', 'bin/', ...packages],
        },
      ],
      // Without -modcacherw Go's module cache is read-only even for its owner, who could then not delete it.
      env: {
        GOPATH: '/tmp/go',
        GOMODCACHE: '/cache/go-modules',
        GOCACHE: '/cache/go-build',
        GOFLAGS: '-modcacherw',
        // The toolchain is chosen above. Another one would be installed into the cache of the app.
        GOTOOLCHAIN: 'local',
      },
      path: ['/app/bin', ...go.path],
      toolchain: go.mounts,
      cacheDirectories: ['go-modules', 'go-build'],
      runtimeEnv: {},
      async defaultProcesses(built) {
        const programs = await findPrograms(built, before);
        const wanted = context.env['RAILPACK_GO_BIN'] ?? context.env['NIXPACKS_GO_BIN'];
        // Of several commands of which none is clear, the first one.
        const [first] = (await source.list('cmd')).filter((name) => programs.includes(name));
        const chosen = chooseProgram(programs, [wanted, await moduleName(source)]) ?? first;
        return chosen === undefined ? {} : { web: `bin/${chosen}` };
      },
      processHint: describePrograms(await source.list('cmd')),
    };
  },
};

/** A pin is exact. The lines of go.mod and go.work name the oldest Go that will do, by Go's own rules. */
async function findGoRequest(source: SourceTree, pins: VersionPins): Promise<VersionRequest | undefined> {
  const pinned = pins.get('go');
  if (pinned !== undefined) return pinned;
  for (const file of ['go.work', 'go.mod']) {
    const text = (await source.readText(file)) ?? '';
    const version = /^toolchain\s+go([\d.]+)/m.exec(text)?.[1] ?? /^go\s+(\d+\.\d+(?:\.\d+)?)/m.exec(text)?.[1];
    if (version !== undefined) return { version: `>=${version}`, source: file };
  }
  return undefined;
}

/** `./...`, or that of each module of a workspace. */
async function listPackages(source: SourceTree): Promise<readonly string[]> {
  const work = await source.readText('go.work');
  if (work === undefined) return (await source.hasFile('go.mod')) ? ['./...'] : ['main.go'];
  const directories: string[] = [];
  let inside = false;
  for (const line of work.split('\n')) {
    const words = line
      .replace(/\/\/.*/, '')
      .trim()
      .split(/\s+/);
    if (words[0] === 'use' && words[1] === '(') inside = true;
    else if (words[0] === ')') inside = false;
    else if (words[0] === 'use' && words[1] !== undefined) directories.push(words[1]);
    else if (inside && words[0] !== undefined && words[0] !== '') directories.push(words[0]);
  }
  return directories.map((directory) => `${directory.replace(/\/$/, '')}/...`.replace(/^(?!\.)/, './'));
}

/** As Go names the program of the module: without its major version. */
async function moduleName(source: SourceTree): Promise<string | undefined> {
  return /^module\s+(?:\S*?\/)?([^/\s]+)(?:\/v\d+)?\s*$/m.exec((await source.readText('go.mod')) ?? '')?.[1];
}

function describePrograms(commands: readonly string[]): string {
  const names = commands.filter((name) => /^[\w-]+$/.test(name));
  const what =
    names.length > 1
      ? `This module has several programs (${names.slice(0, 10).join(', ')}), and none is called web, server or like the module.`
      : 'Nothing in this module is `package main`, or several are and none is called web or server.';
  return `${what} Add a Procfile with a line as: web: bin/${names[0] ?? '<program>'}`;
}

const elf = [0x7f, 0x45, 0x4c, 0x46];

async function findPrograms(built: SourceTree, before: ReadonlySet<string>): Promise<readonly string[]> {
  const programs: string[] = [];
  for (const name of await built.list('bin')) {
    const start = await built.readBytes(`bin/${name}`, elf.length);
    if (!before.has(name) && elf.every((byte, index) => start?.[index] === byte)) programs.push(name);
  }
  return programs.filter((name) => /^[\w.-]+$/.test(name));
}
