/**
 * `npm run test:clients:compare -- [--git /path/to/git]... [--only name] [--transport ssh|http]`: compares a
 * whole platform with git's own server, with the same history and everything that a current client can ask for: filters, shallow
 * histories, fetches on demand, negotiation, leases and more. git's server is a local directory in place of SSH, and `git
 * http-backend` for HTTP. Prints each difference, and exits with 1 when there is one.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { fetches } from '#test/clients/comparisons/fetches.ts';
import { makeHistory } from '#test/clients/comparisons/history.ts';
import { pushes } from '#test/clients/comparisons/pushes.ts';
import { type Comparison, openSide } from '#test/clients/comparisons/side.ts';
import { removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { createUser } from '#test/support/platform/user.ts';
import { runChecked } from '#test/support/run-program.ts';
import { startGitHttpServer } from '#test/support/servers/git-http-server.ts';

const { values } = parseArgs({
  options: {
    git: { type: 'string', multiple: true, default: [] },
    only: { type: 'string' },
    transport: { type: 'string' },
  },
});
/** Prefix of the result of a comparison that failed. */
const failed = 'failed: ';
const home = await mkdtemp(join(tmpdir(), 'paas-compare-'));
const gitHost = await startGitHttpServer();
const platform = await startPlatform();
const user = await createUser(platform);
let differences = 0;
let compared = 0;
try {
  const { ours, theirs } = await openServers();
  for (const program of ['git', ...values.git]) {
    for (const transport of ['ssh', 'http'] as const) {
      if (values.transport !== undefined && values.transport !== transport) continue;
      for (const version of ['0', '2']) await compareAll(program, version, ours[transport], theirs[transport]);
    }
  }
} finally {
  await user.remove();
  await removePlatform(platform);
  await gitHost.close();
  await rm(home, { recursive: true, force: true });
}
console.log(`${compared} comparisons, ${differences} differences`);
process.exitCode = differences > 0 ? 1 : 0;

/** Repositories: with the whole history, with the same history for pushes, and without refs. */
interface Addresses {
  full: string;
  pushed: string;
  empty: string;
}

/** Pushes the same history to apps of the platform, and to directories that git serves. */
async function openServers(): Promise<Record<'ours' | 'theirs', Record<'ssh' | 'http', Addresses>>> {
  const history = join(home, 'history');
  await makeHistory(history);
  const addresses = (urlOf: (name: keyof Addresses) => string): Addresses => ({
    full: urlOf('full'),
    pushed: urlOf('pushed'),
    empty: urlOf('empty'),
  });
  const paths: Addresses = { full: '', pushed: '', empty: '' };
  const ssh: Addresses = { full: '', pushed: '', empty: '' };
  for (const name of ['full', 'pushed', 'empty'] as const) {
    ssh[name] = (await user.createApp(name)).push_url;
    paths[name] = await gitHost.createRepository(`${name}.git`);
    for (const setting of [
      'uploadpack.allowFilter',
      'uploadpack.allowAnySHA1InWant',
      'receive.advertisePushOptions',
      'http.receivePack',
    ])
      await runChecked('git', ['-C', paths[name], 'config', setting, 'true']);
    if (name === 'empty') continue;
    for (const url of [ssh[name], paths[name]]) {
      for (const which of ['--all', '--tags']) {
        const { code, output } = await user.git(history, ['push', '-q', url, which]);
        if (code !== 0) throw new Error(output);
      }
    }
  }
  const http = addresses((name) => `http://git:${user.token}@localhost:${platform.httpPort}/${name}.git`);
  return {
    ours: { ssh, http },
    theirs: {
      ssh: addresses((name) => `file://${paths[name]}`),
      http: addresses((name) => `${gitHost.url}/${name}.git`),
    },
  };
}

async function compareAll(program: string, version: string, ours: Addresses, theirs: Addresses): Promise<void> {
  const { stdout } = await runChecked(program, ['version']);
  const title = `${stdout.trim()}, ${ours.full.split(':')[0]}, protocol ${version}`;
  let different = 0;
  const comparisons = [
    ...Object.entries(fetches).map(([name, comparison]) => ({ name, comparison, to: 'full' as const })),
    ...Object.entries(pushes).map(([name, comparison]) => ({ name, comparison, to: 'pushed' as const })),
  ];
  for (const { name, comparison, to } of comparisons) {
    if (values.only !== undefined && !name.includes(values.only)) continue;
    const results = [theirs, ours].map((side) => resultOf(comparison, program, version, side[to], side.empty));
    const [theirResult = '', ourResult = ''] = await Promise.all(results);
    if (ourResult.startsWith(failed) && ourResult.includes('error: unknown option')) {
      console.log(`${title}: ${name}: this git has no such option`);
      continue;
    }
    compared++;
    // When both sides fail, nothing was compared.
    if (ourResult === theirResult && !ourResult.startsWith(failed)) continue;
    different++;
    console.log(`${title}: ${name}\n${firstDifference(theirResult, ourResult)}\n`);
  }
  differences += different;
  console.log(`${title}: ${different} differences`);
}

async function resultOf(
  comparison: Comparison,
  program: string,
  version: string,
  url: string,
  emptyUrl: string,
): Promise<string> {
  const sshCommand = `ssh -F none -i ${join(user.home, 'id_ed25519')} -o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR`;
  const side = await openSide({ program, version, url, emptyUrl, home, sshCommand });
  try {
    return await comparison(side);
  } catch (error) {
    return `${failed}${String(error)}`.replaceAll(url, 'URL').replaceAll(side.directory, 'DIRECTORY');
  } finally {
    await rm(side.directory, { recursive: true, force: true });
  }
}

function firstDifference(theirs: string, ours: string): string {
  const [a, b] = [theirs.split('\n'), ours.split('\n')];
  const at = a.findIndex((line, i) => line !== b[i]);
  const from = at < 0 ? a.length : at;
  const show = (lines: readonly string[]): string => lines.slice(from, from + 8).join('\n    ');
  return `  git (${a.length} lines):\n    ${show(a)}\n  ours (${b.length} lines):\n    ${show(b)}`;
}
