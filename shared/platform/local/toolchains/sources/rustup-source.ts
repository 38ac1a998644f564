import { readdir } from 'node:fs/promises';
import { EnvHttpProxyAgent, fetch } from 'undici/index.js';
import { runProgram, type SourceParts, type ToolSource } from './tool-source.ts';

const dated = /^(?:nightly|beta)-\d{4}-\d\d-\d\d$/;

/**
 * Rust's own distribution server, by the host's rustup, which proves the hashes of what it installs. The server has no list of
 * versions, but a file for each channel: 'stable', '1.88', '1.88.0', 'nightly'.
 */
export function createRustupSource(parts: SourceParts): ToolSource {
  return {
    async listVersions(request) {
      if ((await parts.findProgram('rustup')) === undefined) return [];
      if (dated.test(request)) return [request];
      const channel = /^(?:\d+\.\d+(?:\.\d+)?|beta|nightly)$/.exec(request)?.[0] ?? 'stable';
      const version = await readChannel(parts, channel);
      return version === undefined ? [] : [version];
    },
    async install(version, directory) {
      const program = await parts.findProgram('rustup');
      if (program === undefined) throw new Error('There is no rustup on the host.');
      const env = { ...parts.hostEnv, RUSTUP_HOME: `${directory}/rustup`, CARGO_HOME: `${directory}/cargo` };
      const args = ['toolchain', 'install', version, '--profile', 'minimal', '--no-self-update'];
      await runProgram({ program, args, cwd: directory, env });
      const [name] = await readdir(`${directory}/rustup/toolchains`);
      if (name === undefined) throw new Error('rustup installed no toolchain.');
      return `${directory}/rustup/toolchains/${name}`;
    },
  };
}

/** '1.88.0' of a stable channel, 'nightly-2026-01-01' of the others. Undefined if there is no such channel. */
async function readChannel({ hostEnv }: SourceParts, channel: string): Promise<string | undefined> {
  const server = hostEnv['RUSTUP_DIST_SERVER'] ?? 'https://static.rust-lang.org';
  const dispatcher = new EnvHttpProxyAgent({
    httpProxy: hostEnv['http_proxy'] ?? hostEnv['HTTP_PROXY'] ?? '',
    httpsProxy: hostEnv['https_proxy'] ?? hostEnv['HTTPS_PROXY'] ?? '',
    noProxy: hostEnv['no_proxy'] ?? hostEnv['NO_PROXY'] ?? '',
  });
  try {
    const answer = await fetch(`${server.replace(/\/$/, '')}/dist/channel-rust-${channel}.toml`, {
      dispatcher,
      signal: AbortSignal.timeout(30_000),
    });
    const text = await answer.text();
    if (answer.status === 404) return undefined;
    if (!answer.ok) throw new Error(`The distribution server of Rust answered ${answer.status}.`);
    if (channel === 'beta' || channel === 'nightly') {
      const date = /^date = "(\d{4}-\d\d-\d\d)"/m.exec(text)?.[1];
      return date === undefined ? undefined : `${channel}-${date}`;
    }
    return /^\[pkg\.rust\]\s+version = "(\d+\.\d+\.\d+)/m.exec(text)?.[1];
  } finally {
    await dispatcher.close();
  }
}
