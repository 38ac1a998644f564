import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRandom } from '#test/support/random.ts';

/** Size of a generated repository. */
export interface RepositoryShape {
  files: number;
  commits: number;
  /** Files that each commit after the first changes. */
  changesEach: number;
  /** Files of random bytes in the first commit. */
  largeFiles?: { count: number; bytes: number };
}

/** Generates a bare repository of random text, packed like that of a client. The same shape gives the same repository. */
export async function makeRepository(path: string, shape: RepositoryShape): Promise<void> {
  await run('git', ['init', '-q', '--bare', '--initial-branch=main', path]);
  const importer = spawn('git', ['-C', path, 'fast-import', '--quiet'], { stdio: ['pipe', 'ignore', 'inherit'] });
  const ended = once(importer, 'exit') as Promise<[number]>;
  for (const piece of importStream(shape)) {
    if (!importer.stdin.write(piece)) await once(importer.stdin, 'drain');
  }
  importer.stdin.end();
  const [code] = await ended;
  if (code !== 0) throw new Error(`git fast-import exited with ${code}`);
  await run('git', ['-C', path, 'repack', '-adfq', '--window=10', '--depth=50']);
}

async function run(command: string, args: readonly string[]): Promise<void> {
  const [code] = (await once(spawn(command, args, { stdio: ['ignore', 'ignore', 'inherit'] }), 'exit')) as [number];
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} exited with ${code}`);
}

function* importStream({ files, commits, changesEach, largeFiles }: RepositoryShape): Generator<Buffer | string> {
  const random = createRandom(1);
  const words = Array.from({ length: 5000 }, () =>
    Array.from({ length: 3 + random(8) }, () => 'etaoinshrdlucmfw'[random(16)]).join(''),
  );
  const line = (): string => Array.from({ length: 4 + random(9) }, () => words[random(words.length)]).join(' ');
  const contents = Array.from({ length: files }, () => Array.from({ length: 10 + random(111) }, line));
  for (let commit = 0; commit < commits; commit++) {
    const message = `commit ${commit}\n`;
    yield `commit refs/heads/main\ncommitter Bench <bench@localhost> ${1_500_000_000 + commit * 100} +0000\n${data(message)}`;
    const changed = commit === 0 ? contents.map((_, i) => i) : Array.from({ length: changesEach }, () => random(files));
    for (const file of changed) {
      const lines = contents[file] ?? [];
      if (commit > 0) lines[random(lines.length)] = line();
      yield `M 100644 inline d${file % 40}/e${Math.floor(file / 40) % 25}/f${file}.txt\n${data(lines.join('\n'))}`;
    }
    for (let large = 0; commit === 0 && large < (largeFiles?.count ?? 0); large++) {
      const bytes = Buffer.alloc(largeFiles?.bytes ?? 0);
      for (let at = 0; at + 4 <= bytes.length; at += 4) bytes.writeUInt32LE(random(2 ** 32), at);
      yield `M 100644 inline large/${large}.bin\ndata ${bytes.length}\n`;
      yield bytes;
      yield '\n';
    }
  }
}

function data(text: string): string {
  return `data ${Buffer.byteLength(text)}\n${text}\n`;
}
