import { runProgram, type SourceParts, type ToolSource } from './tool-source.ts';

/** A program in a wheel of PyPI: no code of the package runs, and pip proves its hash. */
export function createPipSource(parts: SourceParts, name: string): ToolSource {
  const pip = async (args: readonly string[]): Promise<string> => {
    const program = await parts.findProgram('python3');
    if (program === undefined) throw new Error('There is no Python on the host.');
    return runProgram({ program, args: ['-m', 'pip', ...args], cwd: '/', env: parts.hostEnv });
  };
  return {
    async listVersions() {
      const said = await pip(['index', 'versions', name, '--disable-pip-version-check']);
      return /^Available versions: (.*)$/m.exec(said)?.[1]?.split(', ') ?? [];
    },
    async install(version, directory) {
      const flags = ['--no-deps', '--only-binary', ':all:', '--no-compile', '--disable-pip-version-check'];
      await pip(['install', ...flags, '--root-user-action', 'ignore', '--target', directory, `${name}==${version}`]);
      return directory;
    },
  };
}
