import { existsSync, readdirSync } from 'node:fs';
import { SetupError } from './fault.mjs';
import { run, step } from './run.mjs';

/** What the platform uses of the host beside Node. One of `programs` is enough. */
const tools = [
  { programs: ['git'], debianPackage: 'git', use: 'git' },
  { programs: ['ssh-keygen'], debianPackage: 'openssh-client', use: 'ssh' },
  { programs: ['bwrap'], debianPackage: 'bubblewrap', use: 'the sandbox of builds and apps' },
  { programs: ['ip'], debianPackage: 'iproute2', use: 'the networks of apps' },
  { programs: ['nft'], debianPackage: 'nftables', use: 'the firewall between apps' },
  { programs: ['valkey-server', 'redis-server'], debianPackage: 'redis-server', use: 'the key-value add-on' },
];

/** What only some apps need, and what takes much room: it is not added by itself. */
const optional = [{ programs: ['buildah'], debianPackage: 'buildah', use: 'apps with a Dockerfile' }];

const directories = [...(process.env['PATH'] ?? '').split(':'), '/usr/local/bin', '/usr/bin', '/bin', '/usr/sbin', '/sbin'];

/** Root: installs what is missing. Anybody else: says how, and goes on, for only some features need it. */
export async function ensureHostTools() {
  for (const { programs, debianPackage, use } of optional)
    if (!programs.some(isInstalled))
      console.log(`-----> Not there: ${use}. Who wants it, as root: apt-get install -y ${debianPackage}`);
  const missing = tools.filter(({ programs }) => !programs.some(isInstalled));
  if (missing.length === 0) return;
  const packages = missing.map(({ debianPackage }) => debianPackage);
  const command = `apt-get install -y ${packages.join(' ')}`;
  const uses = missing.map(({ use }) => use).join(', ');
  if (process.getuid?.() !== 0 || !isInstalled('apt-get')) {
    console.log(`-----> Not there: ${uses}. What needs it will say so. As root: ${command}`);
    return;
  }
  try {
    await step(`Adding what the host lacks for ${uses}: ${command}`, () => install(packages));
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    console.error(` !     ${error.message} Going on without it.`);
  }
}

/** @param {string[]} packages */
async function install(packages) {
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  if (!hasPackageLists()) await apt(['update'], env);
  await apt(['install', '-y', '--no-install-recommends', ...packages], env).catch(async (error) => {
    if (!(error instanceof SetupError)) throw error;
    // Lists that are older than the mirror name files it no longer has.
    await apt(['update'], env);
    await apt(['install', '-y', '--no-install-recommends', ...packages], env);
  });
  // Debian starts a key-value server of its own, open to everything on this machine; only the program is wanted.
  if (packages.includes('redis-server')) await run('/usr/sbin/service', ['redis-server', 'stop']);
  if (packages.includes('redis-server')) await run('systemctl', ['disable', '--now', 'redis-server']);
}

/**
 * @param {string[]} args
 * @param {Record<string, string>} env
 */
async function apt(args, env) {
  const { code, output } = await run('apt-get', args, { env });
  if (code === 0) return;
  const reason = output.split('\n').findLast((line) => line.startsWith('E: ')) ?? output.trim().split('\n').at(-1);
  throw new SetupError(`apt-get ${args[0]} failed: ${reason ?? 'no output'}`);
}

function hasPackageLists() {
  try {
    return readdirSync('/var/lib/apt/lists').some((name) => name.endsWith('_Packages') || name.includes('_Packages.'));
  } catch {
    return false;
  }
}

/** @param {string} program */
function isInstalled(program) {
  return directories.some((directory) => existsSync(`${directory}/${program}`));
}
