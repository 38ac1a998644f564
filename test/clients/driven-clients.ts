import { existsSync } from 'node:fs';
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Address, GitClient, Skipped, Toolbox, Transport } from '#test/clients/client.ts';
import { run, runChecked } from '#test/support/run-program.ts';

/**
 * Libraries in other languages. Each has a small program in drivers/, which takes
 * `<library> <clone|fetch|push> <url> <directory> <key file> <refspec>...` and the token in CLIENT_TOKEN.
 */
interface Library {
  name: string;
  transports: readonly Transport[];
  /** Programs that must be in PATH. */
  needs: readonly string[];
  /** Downloads and builds what is missing. Returns the command that runs it. */
  prepare(place: string): Promise<readonly string[]>;
}

const driver = (name: string): string => fileURLToPath(new URL(`./drivers/${name}`, import.meta.url));
const both: readonly Transport[] = ['ssh', 'http'];

async function preparePython(place: string, packages: readonly string[]): Promise<string> {
  const python = join(place, 'bin/python');
  if (!existsSync(python)) await runChecked('python3', ['-m', 'venv', place]);
  await runChecked(python, ['-m', 'pip', 'install', '--quiet', ...packages]);
  return python;
}

const libraries: readonly Library[] = [
  {
    name: 'dulwich 1.2.21',
    transports: both,
    needs: ['python3'],
    prepare: async (place) => [await preparePython(place, ['dulwich==1.2.21']), driver('client.py'), 'dulwich'],
  },
  {
    name: 'libgit2 (pygit2 1.21.0)',
    transports: both,
    needs: ['python3'],
    prepare: async (place) => [await preparePython(place, ['pygit2==1.21.0']), driver('client.py'), 'pygit2'],
  },
  {
    name: 'go-git 5.19.3',
    transports: both,
    needs: ['go'],
    async prepare(place) {
      const program = join(place, 'client');
      if (existsSync(program)) return [program, 'go-git'];
      await copyFile(driver('client.go'), join(place, 'main.go'));
      await run('go', ['mod', 'init', 'client'], { cwd: place });
      await runChecked('go', ['get', 'github.com/go-git/go-git/v5@v5.19.3'], { cwd: place });
      await runChecked('go', ['build', '-o', program, '.'], { cwd: place });
      return [program, 'go-git'];
    },
  },
  {
    name: 'JGit 7.3.0',
    transports: both,
    needs: ['java', 'mvn'],
    async prepare(place) {
      const jars = join(place, 'jars');
      if (!existsSync(jars))
        await runChecked('mvn', [
          '-q',
          '-B',
          '-f',
          driver('pom.xml'),
          'dependency:copy-dependencies',
          `-DoutputDirectory=${jars}`,
        ]);
      return ['java', '-cp', join(jars, '*'), driver('Client.java'), 'jgit'];
    },
  },
];

/** Clients made of libraries in Python, Go and Java. */
export async function openDrivenClients({ cache }: Toolbox): Promise<(GitClient | Skipped)[]> {
  const clients: (GitClient | Skipped)[] = [];
  for (const library of libraries) clients.push(await open(library, cache));
  return clients;
}

async function open({ name, transports, needs, prepare }: Library, cache: string): Promise<GitClient | Skipped> {
  for (const program of needs) {
    if ((await run('which', [program])).code !== 0) return { name, because: `${program} is not in PATH` };
  }
  const place = join(cache, name.replace(/[^\w.]+/g, '-'));
  await mkdir(place, { recursive: true });
  let command: readonly string[];
  try {
    command = await prepare(place);
  } catch (error) {
    return { name, because: `it could not be downloaded or built: ${String(error).slice(0, 300)}` };
  }
  const [program = '', ...first] = command;
  const start = async (verb: string, { url, keyFile, token }: Address, directory: string, refspecs: readonly string[]) => {
    await runChecked(program, [...first, verb, url, directory, keyFile, ...refspecs], {
      cwd: cache,
      env: { CLIENT_TOKEN: token, GIT_CONFIG_GLOBAL: '/dev/null' },
    });
  };
  return {
    name,
    transports,
    patterns: false,
    clone: (server, directory) => start('clone', server, directory, []),
    fetch: (server, directory, refspecs) => start('fetch', server, directory, refspecs),
    push: (server, directory, refspecs) => start('push', server, directory, refspecs),
  };
}
