import { execFile } from 'node:child_process';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { nodeApp } from '#test/support/builds/sample-apps.ts';
import { visit } from '#test/support/platform/user.ts';
import { type Attacker, attackerFiles } from '../attacked-platform.ts';
import { byClient, byOperator, type Claim, inApp, inBuild, listOf, type Probe } from '../probe.ts';

const run = promisify(execFile);

/** Gained when the claim has the canary's word, or the canaries are not as they were. */
async function canaryReached(claim: Claim, { canaries }: Attacker): Promise<string | undefined> {
  if (JSON.stringify(claim).includes(canaries.word)) return 'the canary was read';
  return canaries.findChanges();
}

/** Files of the operator, and the platform's own. */
function secretPaths({ canaries, platform }: Attacker): string[] {
  const own = ['', 'master.key', 'images', 'builds', 'caches', 'uids', 'postgres/data/pg_hba.conf', 'gateway/routes.json'];
  return [canaries.file, canaries.directory, ...own.map((name) => join(platform.dataDir, name)), '/etc/shadow', '/root', '/home'];
}

/** What find(1) prints. Files that vanish meanwhile do not matter. */
async function find(...args: string[]): Promise<string> {
  const { stdout } = await run('find', args, { maxBuffer: 64 * 1024 * 1024 }).catch((error: { stdout: string }) => error);
  return stdout.trim();
}

/** Files of images, builds and caches whose kind or mode nobody may have left there. */
async function findOddFiles(dataDir: string): Promise<string> {
  const places = ['images', 'builds', 'caches'].map((name) => join(dataDir, name));
  const odd = ['(', '-perm', '/7000', '-o', '-type', 'p', '-o', '-type', 'c', '-o', '-type', 'b', '-o', '-type', 's', ')'];
  return find(...places, ...odd);
}

/** A build of another app of the attacker, whose build script makes an attempt. */
function buildOnly(name: string, attempt: string, args: unknown, files: Record<string, string> = {}) {
  return byClient(async (attacker) => {
    const pushed = await attacker.push(name, { ...(await attackerFiles([{ name: attempt, args }])), ...files });
    return { code: pushed.code, output: pushed.output };
  });
}

export const fileProbes: readonly Probe[] = [
  {
    name: 'reads no file of the operator or the platform',
    family: 'files',
    gain: "the operator's files, the key of all secrets, other tenants' sources",
    quick: true,
    attack: (attacker) => inApp('readPaths', { paths: secretPaths(attacker) }),
    judge: async (claim, attacker) => (await canaryReached(claim, attacker)) ?? (listOf(claim).join(', ') || undefined),
    control: (attacker) => byOperator('readPaths', { paths: secretPaths(attacker) }),
  },
  {
    name: 'reads no file of the operator in a build',
    family: 'files',
    gain: "the operator's files",
    quick: true,
    attack: inBuild('readPaths', { paths: ['/etc/shadow', '/root', '/var/log', '/var/lib', '/run/paas-networks', '/run/netns'] }),
    judge: (claim) => listOf(claim).join(', ') || undefined,
    control: byOperator('readPaths', { paths: ['/etc/shadow'] }),
  },
  {
    name: 'writes no file outside of its app',
    family: 'files',
    gain: 'programs and settings of the host',
    attack: ({ canaries }) =>
      inApp('writePaths', {
        paths: [canaries.file, '/usr/bin/owned', '/etc/hosts', '/etc/resolv.conf', '/owned', '/etc/passwd', '/bin/sh'],
      }),
    judge: async (claim, attacker) => (await canaryReached('', attacker)) ?? (listOf(claim).join(', ') || undefined),
  },
  {
    name: 'leaves no program with another user or device in an image',
    family: 'files',
    gain: 'rights of root for whoever starts the program on the host',
    quick: true,
    attack: inBuild('leaveOddFiles', { directory: 'odd' }),
    judge: async (_, { platform }) => (await findOddFiles(platform.dataDir)) || undefined,
  },
  {
    name: 'holds no build up by pipes and links where files were',
    family: 'files',
    gain: 'a build that never ends, or reads a file of the host',
    quick: true,
    attack: ({ canaries }) =>
      buildOnly('odd-files', 'replaceFiles', {
        paths: ['package.json', 'Procfile', 'server.ts', 'package-lock.json', 'node_modules', '.venv'],
        target: canaries.file,
      }),
    judge: async (claim, attacker) => {
      if (!/deployed|Released|failed|error/i.test(JSON.stringify(claim))) return 'the build did not end';
      return (await canaryReached(claim, attacker)) ?? ((await findOddFiles(attacker.platform.dataDir)) || undefined);
    },
  },
  {
    name: 'breaks no build by names that are not text',
    family: 'files',
    gain: "a build's files that nobody can delete",
    attack: inBuild('leaveOddNames', { directory: 'names' }),
    judge: async (_, { platform, app }) => {
      const found = await find(join(platform.dataDir, 'images', app.id), '-path', '*/names/*', '-printf', 'x');
      return found.length % 5 === 0 && found !== '' ? undefined : `${found.length} of 5 files are in the image`;
    },
  },
  {
    name: 'leaves no directories behind that are too deep to delete',
    family: 'files',
    gain: 'disk space that is never freed, and errors of the platform',
    attack: buildOnly('deep', 'leaveDeepDirectories', { directory: 'deep', depth: 3000 }),
    judge: async (claim, attacker) => {
      const { output } = claim as { output: string };
      if (/ENAMETOOLONG|The platform failed/.test(output))
        return `the build ended by an error of the platform: ${output.slice(-300)}`;
      const { id } = await attacker.user.api<{ id: string }>('GET', `/v1/apps/${attacker.nameOf('deep')}`);
      const own = ['-maxdepth', '2', '-uid', String(await attacker.uidOf(id))];
      return (await find(join(attacker.platform.dataDir, 'builds'), ...own)) || undefined;
    },
  },
  {
    name: 'changes no files of a build while the platform stores them',
    family: 'files',
    gain: 'files of the host become its own: /etc, keys, everything',
    quick: true,
    attack: byClient(async (attacker) => {
      const { canaries } = attacker;
      const names = (await readdir(canaries.directory, { recursive: true })).filter((name) => name !== 'inner');
      await attacker.attempt({ name: 'awaitDirectory', args: { milliseconds: 8000 } });
      const passing = { name: 'passDirectory', args: { target: canaries.directory, names } };
      return (await attacker.push('', await attackerFiles([passing]))).output;
    }),
    judge: (_, { canaries }) => canaries.findChanges(),
  },
  {
    name: "has no program of the platform run its code by the app's variables",
    family: 'files',
    gain: 'the rights of the platform, which is root',
    attack: byClient(async (attacker) => {
      const { canaries } = attacker;
      const name = attacker.nameOf('variables');
      const files = {
        ...nodeApp('here'),
        'package.json': JSON.stringify({ name: 's', version: '1.0.0', scripts: { build: 'true', start: 'node server.js' } }),
        'spy.cjs': `try { require('node:fs').writeFileSync(${JSON.stringify(join(canaries.directory, 'owned'))}, 'x'); } catch {}`,
        'spy.sh': `#!/bin/sh\necho x > '${canaries.directory}/owned'\n`,
      };
      await attacker.push('variables', files);
      const { status } = await attacker.user.ask('PATCH', `/v1/apps/${name}/config`, {
        ...{ NODE_OPTIONS: '--require=/app/spy.cjs', NODE_PATH: '/app', BASH_ENV: '/app/spy.sh', ENV: '/app/spy.sh' },
        ...{ LD_PRELOAD: '/app/spy.so', LD_LIBRARY_PATH: '/app', GCONV_PATH: '/app', PATH: '/app:/usr/bin:/bin', HOME: '/app' },
        ...{ GIT_SSH_COMMAND: '/app/spy.sh', GIT_EXTERNAL_DIFF: '/app/spy.sh', PS4: '$(/app/spy.sh)', SHELLOPTS: 'xtrace' },
        ...{ npm_config_script_shell: '/app/spy.sh', TMPDIR: canaries.directory, IFS: '/', PERL5OPT: '-M/app/spy' },
      });
      if (status >= 300) throw new Error(`The variables were not set: ${status}`);
      return (await attacker.push('variables', { ...files, changed: 'x' })).output;
    }),
    judge: canaryReached,
  },
  {
    name: 'serves no file that a link in a static site leads to',
    family: 'files',
    gain: "the operator's files, by a browser",
    attack: ({ canaries }) =>
      byClient(async (attacker) => {
        const links = `mkdir -p public && ln -s ${canaries.file} public/a && ln -s / public/root && ln -s ../../../.. public/up`;
        const scripts = { build: links, start: 'node server.js' };
        await attacker.push('site', {
          ...nodeApp('here'),
          'package.json': JSON.stringify({ name: 's', version: '1.0.0', scripts }),
          'index.html': 'x',
        });
        const pages = await Promise.all(
          ['/a', `/root${canaries.file}`, '/up/etc/shadow'].map((path) =>
            visit(attacker.platform, attacker.nameOf('site'), path),
          ),
        );
        return pages.map(({ body }) => body);
      }),
    judge: canaryReached,
  },
  {
    name: 'writes no memory of its programs to the disk',
    family: 'files',
    gain: 'disk space that nobody counts',
    quick: true,
    attack: inApp('dumpCore'),
    judge: async (claim, { platform, app, uidOf }) => {
      if (claim !== '') return String(claim);
      const uid = await uidOf(app.id);
      const found = await find(platform.dataDir, '-name', 'core*', '-uid', String(uid));
      return found || (await coreLimit(uid));
    },
  },
];

/** Soft and hard limit of the user's processes: dumps of size 1 are given to no handler either, those of size 0 are. */
async function coreLimit(uid: number): Promise<string | undefined> {
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const facts = await stat(`/proc/${pid}`).catch(() => undefined);
    if (facts?.uid !== uid) continue;
    const limits = await readFile(`/proc/${pid}/limits`, 'utf8').catch(() => '');
    const [, soft, hard] = /^Max core file size\s+(\S+)\s+(\S+)/m.exec(limits) ?? [];
    return soft === '1' && hard === '1' ? undefined : `a handler of the host is given its memory (core size ${soft}, ${hard})`;
  }
  return 'it has no process';
}
