import { runProgram, type SourceParts, type ToolSource } from './tool-source.ts';

const architecture = process.arch === 'x64' ? 'amd64' : process.arch;

/** Go's own module proxy has its toolchains, and its checksum database their hashes. */
export function createGoSource(parts: SourceParts): ToolSource {
  return {
    async listVersions() {
      const said = await go(parts, '/', ['list', '-m', '-versions', 'golang.org/toolchain']);
      const suffix = moduleVersion('').slice('v0.0.1-go'.length);
      const versions = said.split(/\s+/).filter((word) => word.startsWith('v0.0.1-go') && word.endsWith(suffix));
      return versions.map((word) => word.slice('v0.0.1-go'.length, -suffix.length)).filter((word) => /^[\d.]+$/.test(word));
    },
    async install(version, directory) {
      await go(parts, directory, ['version'], `go${version}`);
      return `${directory}/golang.org/toolchain@${moduleVersion(version)}`;
    },
  };
}

function moduleVersion(version: string): string {
  return `v0.0.1-go${version}.linux-${architecture}`;
}

/** @param toolchain one that the command downloads, proves and runs as */
async function go(parts: SourceParts, cwd: string, args: readonly string[], toolchain = 'local'): Promise<string> {
  const program = await parts.findProgram('go');
  if (program === undefined) throw new Error('There is no Go on the host.');
  const env = {
    ...parts.hostEnv,
    GOTOOLCHAIN: toolchain,
    GOFLAGS: '-mod=mod -modcacherw',
    GOWORK: 'off',
    ...(cwd === '/' ? {} : { GOMODCACHE: cwd }),
  };
  return runProgram({ program, args, cwd, env });
}
