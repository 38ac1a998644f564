import type { Address, GitClient, Skipped, Toolbox } from '#test/clients/client.ts';
import { run, runChecked } from '#test/support/run-program.ts';

/** The git in PATH and those given by path, with both versions of the protocol. */
export async function openStockGits({ gits }: Toolbox): Promise<(GitClient | Skipped)[]> {
  const clients: (GitClient | Skipped)[] = [];
  for (const program of ['git', ...gits]) {
    const { code, stdout } = await run(program, ['version']);
    const name = stdout.trim();
    if (code !== 0) clients.push({ name: program, because: 'it does not run' });
    else for (const protocol of ['0', '2']) clients.push(stockGit(`${name}, protocol ${protocol}`, program, protocol));
  }
  if (gits.length === 0) clients.push({ name: 'newest git', because: 'pass it with -- --git /path/to/git' });
  return clients;
}

function stockGit(name: string, program: string, protocol: string): GitClient {
  const start = async ({ url, keyFile, token, transport }: Address, args: readonly string[]): Promise<void> => {
    const address = transport === 'http' ? url.replace('://', `://git:${token}@`) : url;
    const ssh = ['ssh', '-F', 'none', '-i', keyFile, '-o', 'IdentitiesOnly=yes', '-o', 'StrictHostKeyChecking=no'];
    await runChecked(program, ['-c', `protocol.version=${protocol}`, ...args.map((arg) => (arg === url ? address : arg))], {
      env: {
        GIT_SSH_COMMAND: [...ssh, '-o', 'UserKnownHostsFile=/dev/null', '-o', 'LogLevel=ERROR'].join(' '),
        GIT_CONFIG_GLOBAL: '/dev/null',
        GIT_TERMINAL_PROMPT: '0',
      },
    });
  };
  return {
    name,
    transports: ['ssh', 'http'],
    patterns: true,
    clone: (server, directory) => start(server, ['clone', '-q', server.url, directory]),
    fetch: (server, directory, refspecs) => start(server, ['-C', directory, 'fetch', '-q', server.url, ...refspecs]),
    push: (server, directory, refspecs) => start(server, ['-C', directory, 'push', '-q', server.url, ...refspecs]),
  };
}
